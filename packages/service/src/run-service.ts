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
 * Runs a service as a process, until SIGTERM or SIGINT. If the service cannot start, the process prints the reasons to stderr and exits
 * with code 1. Any other error is a bug: the process exits with code 1, and the stack trace is in the log and on stderr.
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
    // The handler of the signals is registered first, because a signal may arrive while the service starts.
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
    // Without this call, connections that are already open would keep the process running.
    process.exit(1);
  }
}

/** Starts tracing. While the trace collector is down, sending spans fails every few seconds. The log therefore reports it at most once a minute. */
function openTracing(name: string, log: Logger): Promise<Tracing> {
  const onFailure = onceAMinute((reason: string) => {
    log.warn({ event: 'tracing_failed', reason }, 'spans could not be sent and were dropped');
  });
  return startTracing(readTracedService(process.env, name), onFailure);
}

/** Ends the process on a bug, after the buffered log lines are written. Node alone would exit at once and lose them. */
function endOnDefect(log: Logger): void {
  process.once('uncaughtException', (err) => {
    log.fatal({ event: 'crashed', err }, 'the process exits because of a bug');
    // If stderr is closed, writing fails. Without this listener, the failure would throw again and keep the process from exiting.
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
      log.error({ event: 'stop_failed', err }, 'the service could not stop cleanly');
      await endLog(log);
      process.exit(1);
    }
  };
  for (const reason of ['SIGTERM', 'SIGINT'] as const) process.on(reason, () => end(reason));
}

/**
 * Makes full garbage collections rarer. This helps services that use much memory outside the heap, such as for request bodies and jobs. V8
 * counts external memory as heap growth. For a heap of 25 MB, it would run a full collection for each 20 MB of jobs, several times a
 * second. With this setting, the heap may double, up to `--max-old-space-size`, before a full collection.
 */
export function collectGarbageLate(): void {
  setFlagsFromString('--heap-growing-percent=100');
}
