import { type DestinationStream, type Logger, pino } from 'pino';
import { LogDestination } from './log-destination.js';

/** How long the reader of the log has to take the last lines. */
const LAST_LINES_MS = 1_000;
const MINUTE_MS = 60_000;

/**
 * JSON lines on standard output, each of limited length, written in the background: a reader that stalls or a disk that
 * is full must not block the service. To be ended with {@link endLog}.
 * @param name of the service
 * @param stream instead of standard output
 */
export function createLog(name: string, level: string, stream?: DestinationStream): Logger {
  const options = { name, level, serializers: { err: errorFields } };
  if (stream) return pino(options, stream);
  // Node opens standard output when it is first asked for, and makes a pipe answer at once when it is full. A thread that
  // waited for a stalled reader would keep the process from exiting.
  const destination = new LogDestination(process.stdout.fd, (lines) => {
    log.warn({ event: 'log_lost', lines }, 'the log could not be written for a while, and these lines are lost');
  });
  const log = pino(options, destination);
  destinations.set(log, destination);
  return log;
}

const destinations = new WeakMap<Logger, LogDestination>();

/** Writes what is left before the process exits, if its reader takes it within a second. */
export async function endLog(log: Logger): Promise<void> {
  await destinations.get(log)?.end(LAST_LINES_MS);
}

/**
 * Limits a line that one fault may cause many times a second.
 * @returns a function that calls `write` at most once a minute, and otherwise does nothing
 */
export function onceAMinute<Args extends readonly unknown[]>(
  write: (...args: Args) => void,
  clock: () => number = Date.now,
): (...args: Args) => void {
  let writtenAt = Number.NEGATIVE_INFINITY;
  return (...args) => {
    if (clock() - writtenAt < MINUTE_MS) return;
    writtenAt = clock();
    write(...args);
  };
}

/**
 * Logs an outage when it begins, once a minute while it lasts, and when it is over, however many attempts fail in
 * between.
 */
export class Outage {
  readonly #log: Logger;
  readonly #server: string;
  readonly #consequence: string;
  readonly #clock: () => number;
  #current: { readonly since: number; failures: number; warnedAt: number } | undefined;

  /** @param consequence of the outage until the server answers: "jobs stay in the queue until it does" */
  constructor(log: Logger, server: string, consequence: string, clock: () => number = Date.now) {
    this.#log = log;
    this.#server = server;
    this.#consequence = consequence;
    this.#clock = clock;
  }

  get isOn(): boolean {
    return this.#current !== undefined;
  }

  failed(err: unknown): void {
    const now = this.#clock();
    this.#current ??= { since: now, failures: 0, warnedAt: Number.NEGATIVE_INFINITY };
    const current = this.#current;
    current.failures += 1;
    if (now - current.warnedAt < MINUTE_MS) return;
    current.warnedAt = now;
    const { failures, since } = current;
    this.#log.warn(
      { event: 'outage', server: this.#server, failures, seconds: (now - since) / 1000, err },
      `${this.#server} does not answer; ${this.#consequence}`,
    );
  }

  recovered(): void {
    if (!this.#current) return;
    const { failures, since } = this.#current;
    const seconds = (this.#clock() - since) / 1000;
    this.#log.info({ event: 'outage_over', server: this.#server, failures, seconds }, `${this.#server} answers again`);
    this.#current = undefined;
  }
}

/**
 * The fields of an error that a log may show, its causes included in message and stack. Everything else is left out:
 * libraries attach to errors what they worked on. ioredis attaches the command with its arguments, so a password or the
 * data of a job.
 */
function errorFields(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { type, message, stack } = pino.stdSerializers.err(error);
  const code: unknown = 'code' in error ? error.code : undefined;
  return {
    type,
    message,
    stack,
    ...((typeof code === 'string' || typeof code === 'number') && { code }),
    ...(error instanceof AggregateError && { errors: error.errors.map(errorFields) }),
  };
}
