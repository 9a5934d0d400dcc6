import { type DestinationStream, type Logger, pino } from 'pino';

const STANDARD_OUTPUT = 1;

/**
 * JSON lines on standard output, each written at once. With writes in the background pino flushes at the exit, and where
 * whoever read the log is gone that flush is tried again for ever: the process would never end.
 * @param name of the service
 * @param stream instead of standard output
 */
export function createLog(name: string, level: string, stream?: DestinationStream): Logger {
  const options = { name, level, serializers: { err: errorFacts } };
  return pino(options, stream ?? pino.destination({ fd: STANDARD_OUTPUT, sync: true }));
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
