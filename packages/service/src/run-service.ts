import type { Logger } from 'pino';
import { EnvError } from './environment.js';
import { createLog, endLog } from './log.js';
import { StartError } from './start-error.js';
import { stopOnRequest } from './stop-request.js';
import { readTracingSettings, startTracing, type Tracing, tracingTrouble } from './tracing/index.js';

export interface Service {
  stop(): Promise<void>;
}

/**
 * A service as a process: starts it, stops it on request, and tells in plain lines on stderr, with exit code 1, why it
 * cannot start. Any other error is a defect and ends the process with its stack.
 * @param readEnv throws EnvError
 * @param start throws StartError
 */
export async function runService<Env extends { readonly LOG_LEVEL: string }>(
  name: string,
  readEnv: (variables: NodeJS.ProcessEnv) => Env,
  start: (env: Env, log: Logger, tracing: Tracing) => Promise<Service>,
): Promise<void> {
  let log: Logger | undefined;
  try {
    const env = readEnv(process.env);
    log = createLog(name, env.LOG_LEVEL);
    const tracing = await startTracing(readTracingSettings(process.env, name), tracingTrouble(log));
    let service: Service | undefined;
    // Before the start, so that no request to stop is answered by sudden death. Until it is there it has nothing to finish.
    stopOnRequest(log, async () => {
      await service?.stop();
      await tracing.close();
    });
    service = await start(env, log, tracing);
  } catch (error) {
    if (!(error instanceof EnvError) && !(error instanceof StartError)) throw error;
    const lines = error instanceof EnvError ? error.faults : [error.message.replace(/\s+/g, ' ')];
    for (const line of lines) process.stderr.write(`${name}: ${line}\n`);
    if (log) await endLog(log);
    // Connections that are open by now would keep the process running.
    process.exit(1);
  }
}
