/** Ends the process in good order, whoever asks for it. */
import type { Logger } from 'pino';
import { endLog } from './log.js';

/** Container runtimes kill 10 s after SIGTERM; what is left by then must be cut off before. */
export const STOP_DEADLINE_MS = 8_000;

/**
 * On SIGTERM, SIGINT, or when the parent process that holds the other end of our IPC channel goes away: runs `stop` once
 * and exits with 0, with 1 if it fails.
 */
export function stopOnRequest(log: Logger, stop: () => Promise<void>): void {
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
      log.error({ event: 'stop_failed', err }, 'could not stop in good order');
      await endLog(log);
      process.exit(1);
    }
  };
  for (const reason of ['SIGTERM', 'SIGINT', 'disconnect'] as const) process.on(reason, () => end(reason));
  // The parent went away while the service was starting; without a parent this is undefined.
  if (process.connected === false) end('disconnect');
}
