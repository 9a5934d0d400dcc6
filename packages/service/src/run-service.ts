import { setFlagsFromString } from 'node:v8';
import type { Logger } from 'pino';
import { allowSlowConnections } from './connecting.js';
import { EnvError } from './environment.js';
import { createLog, endLog, onceAMinute } from './log.js';
import { useOutboundProxy } from './outbound-proxy.js';
import { StartError } from './start-error.js';
import { readTracedService, startTracing, type Tracing } from './tracing.js';

export interface Service {
  stop(): Promise<void>;
}

/**
 * Runs a service as a process: starts it and stops it on request. If it cannot start, plain lines on stderr say why and
 * the exit code is 1. Any other error is a defect: it ends the process with code 1, and its stack is in the log and on
 * stderr.
 * @param readEnv throws EnvError
 * @param start throws StartError
 */
export async function runService<Env extends { readonly LOG_LEVEL: string }>(
  name: string,
  readEnv: (variables: NodeJS.ProcessEnv) => Env,
  start: (env: Env, log: Logger, tracing: Tracing) => Promise<Service>,
): Promise<void> {
  allowSlowConnections();
  let log: Logger | undefined;
  try {
    const env = readEnv(process.env);
    log = createLog(name, env.LOG_LEVEL);
    endOnDefect(log);
    await useOutboundProxy(process.env);
    const tracing = await openTracing(name, log);
    let service: Service | undefined;
    // Before the start, because a request to stop may come during it. Then there is nothing to finish yet.
    stopOnRequest(log, async () => {
      await service?.stop();
      await tracing.close();
    });
    service = await start(env, log, tracing);
  } catch (error) {
    if (!(error instanceof EnvError) && !(error instanceof StartError)) throw error;
    const lines = error instanceof EnvError ? error.problems : [error.message.replace(/\s+/g, ' ')];
    for (const line of lines) process.stderr.write(`${name}: ${line}\n`);
    if (log) await endLog(log);
    // Connections that are open by now would keep the process running.
    process.exit(1);
  }
}

/** A collector of spans that is away fails an attempt every few seconds. Nothing else depends on it. */
function openTracing(name: string, log: Logger): Promise<Tracing> {
  const onFailure = onceAMinute((reason: string) => {
    log.warn({ event: 'tracing_failed', reason }, 'spans could not be sent and are lost');
  });
  return startTracing(readTracedService(process.env, name), onFailure);
}

/** Node alone would end at once, before the last lines are written: those that led to the defect. */
function endOnDefect(log: Logger): void {
  process.once('uncaughtException', (err) => {
    log.fatal({ event: 'crashed', err }, 'a defect ends the process');
    // The loss of standard error must not keep the process from ending.
    process.stderr.once('error', () => undefined);
    const exit = () => process.exit(1);
    endLog(log)
      .then(() => process.stderr.write(`${err.stack ?? err}\n`))
      .then(exit, exit);
  });
}

/** Runs `stop` once, on SIGTERM or SIGINT. The exit code is 0, or 1 if the stop fails. */
function stopOnRequest(log: Logger, stop: () => Promise<void>): void {
  let stopping = false;
  const end = async (reason: string) => {
    if (stopping) return;
    stopping = true;
    log.info({ event: 'stopping', reason }, 'stopping');
    try {
      await stop();
      log.info({ event: 'stopped' }, 'stopped');
      await endLog(log);
      process.exit(0);
    } catch (err) {
      log.error({ event: 'stop_failed', err }, 'the stop was not clean');
      await endLog(log);
      process.exit(1);
    }
  };
  for (const reason of ['SIGTERM', 'SIGINT'] as const) process.on(reason, () => end(reason));
}

/**
 * For a service through which much memory outside the heap passes, such as bodies, jobs and blocks. Node counts it as if the heap had grown,
 * and would look through a heap of 25 MB for each 20 MB of jobs, several times a second. From now on the heap may grow to twice
 * what is in use, or to `--max-old-space-size`, before all of it is collected.
 */
export function collectGarbageLate(): void {
  setFlagsFromString('--heap-growing-percent=100');
}
