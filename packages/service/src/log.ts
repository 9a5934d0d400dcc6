import { setTimeout as delay } from 'node:timers/promises';
import { type DestinationStream, type Logger, pino } from 'pino';

/** Whoever reads the log has so long to take what is left of it. */
const LAST_LINES_MS = 1_000;

/**
 * JSON lines on standard output, written in the background: a reader that stalls must not hold up the service. To be
 * ended with {@link endLog}.
 * @param name of the service
 * @param stream instead of standard output
 */
export function createLog(name: string, level: string, stream?: DestinationStream): Logger {
  const options = { name, level, serializers: { err: errorFacts } };
  if (stream) return pino(options, stream);
  const destination = pino.destination({ sync: false });
  const log = pino(options, destination);
  destinations.set(log, destination);
  return log;
}

const destinations = new WeakMap<Logger, ReturnType<typeof pino.destination>>();

/**
 * Before the process exits: writes what is left, as far as anybody takes it. pino would try that at the exit, and again
 * for ever where whoever read the log is gone or has stalled.
 */
export async function endLog(log: Logger): Promise<void> {
  const destination = destinations.get(log);
  if (!destination) return;
  const written = new Promise((resolve) => destination.once('close', resolve));
  destination.end();
  await Promise.race([written, delay(LAST_LINES_MS)]);
  destination.flushSync = () => undefined;
}

interface ErrorFacts {
  readonly type: string;
  readonly message: string;
  readonly stack: string;
  readonly code?: string | number;
  /** Those that it stands for. */
  readonly errors?: readonly unknown[];
}

/**
 * What a log may tell of an error, those that caused it included, and nothing else of it: libraries hang on errors
 * whatever they had in hand. To ioredis that is the command with its arguments, so a password or the data of a job.
 */
function errorFacts(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { type, message, stack } = pino.stdSerializers.err(error);
  const code: unknown = 'code' in error ? error.code : undefined;
  return {
    type,
    message,
    stack,
    ...((typeof code === 'string' || typeof code === 'number') && { code }),
    ...(error instanceof AggregateError && { errors: error.errors.map(errorFacts) }),
  } satisfies ErrorFacts;
}
