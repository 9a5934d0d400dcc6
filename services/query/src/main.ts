/** The query service as a process. */
import { pino } from 'pino';
import { EnvError, readEnv } from './env.js';
import { SHUTDOWN_DEADLINE_MS, stopOnRequest } from './shutdown.js';
import { StartError, startService } from './start.js';

try {
  const env = readEnv();
  const log = pino({ name: 'meterline-query', level: env.LOG_LEVEL });
  const service = await startService(env, log);
  stopOnRequest(process, log, () => service.stop(SHUTDOWN_DEADLINE_MS));
  log.info({ port: service.port }, 'listening');
} catch (error) {
  if (!(error instanceof EnvError) && !(error instanceof StartError)) throw error;
  for (const line of error.message.split('\n')) process.stderr.write(`meterline query: ${line}\n`);
  process.exit(1);
}
