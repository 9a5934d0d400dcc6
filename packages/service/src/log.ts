/**
 * Writes the log of a service, and limits repeated lines during outages. Lines are written to a file descriptor in the background. The service
 * keeps running even if the reader stalls, the disk is full or the descriptor is closed. A limited number of lines is then buffered, and later
 * lines are dropped and counted.
 *
 * `pino.destination` is not used for two reasons. Its unhandled errors end the process. At exit, it retries its remaining lines, and does so
 * forever if the disk is full.
 */
import { type DestinationStream, type Logger, pino } from 'pino';
import sonicBoom from 'sonic-boom';
import { connectionHint } from './connection-hint.js';
import { inTime } from './waiting.js';

/** The timeout for writing the last lines before the process exits. */
const LAST_LINES_MS = 1_000;
const MINUTE_MS = 60_000;

/** Creates a log of JSON lines on standard output, or on `stream` if given. Close the log with {@link endLog}. */
export function createLog(name: string, level: string, stream?: DestinationStream): Logger {
  const options = { name, level, serializers: { err: errorFields } };
  if (stream) return pino(options, stream);
  // Reading `process.stdout.fd` makes Node open standard output, which sets a pipe to non-blocking mode. In blocking mode, a thread that
  // waits for a stalled reader would keep the process from exiting.
  const destination = new LogDestination(process.stdout.fd, (lines) => {
    log.warn({ event: 'log_lost', lines }, 'log lines were dropped because the log could not be written for a while');
  });
  const log = pino(options, destination);
  destinations.set(log, destination);
  return log;
}

const destinations = new WeakMap<Logger, LogDestination>();

export async function endLog(log: Logger): Promise<void> {
  await destinations.get(log)?.end(LAST_LINES_MS);
}

/** Returns a function that calls `write` at most once a minute. It is meant for errors that may repeat many times a second. */
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

/** Logs an outage when it begins, once a minute while it lasts, and when it ends. */
export class Outage {
  readonly #log: Logger;
  readonly #server: string;
  readonly #consequence: string;
  readonly #clock: () => number;
  #current: { readonly since: number; failures: number; warnedAt: number; err?: unknown } | undefined;

  /** @param consequence the effect of the outage, for the log message, such as "jobs stay in the queue until it does" */
  constructor(log: Logger, server: string, consequence: string, clock: () => number = Date.now) {
    this.#log = log;
    this.#server = server;
    this.#consequence = consequence;
    this.#clock = clock;
  }

  get isOn(): boolean {
    return this.#current !== undefined;
  }

  get cause(): unknown {
    return this.#current?.err;
  }

  failed(err: unknown): void {
    const now = this.#clock();
    this.#current ??= { since: now, failures: 0, warnedAt: Number.NEGATIVE_INFINITY };
    const current = this.#current;
    current.failures += 1;
    current.err = err;
    if (now - current.warnedAt < MINUTE_MS) return;
    current.warnedAt = now;
    const { failures, since } = current;
    this.#log.warn(
      { event: 'outage', server: this.#server, failures, seconds: (now - since) / 1000, err },
      [`${this.#server} does not respond`, connectionHint(err), this.#consequence].filter(Boolean).join('; '),
    );
  }

  recovered(): void {
    if (!this.#current) return;
    const { failures, since } = this.#current;
    const seconds = (this.#clock() - since) / 1000;
    this.#log.info({ event: 'outage_over', server: this.#server, failures, seconds }, `${this.#server} responds again`);
    this.#current = undefined;
  }
}

/**
 * Returns the fields of an error that are safe to log. `message` and `stack` include the causes. Other fields are omitted, because they may
 * contain secrets. For example, ioredis attaches the failed command with its arguments, such as a password or a job's data.
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

const MAX_WAITING_BYTES = 1024 * 1024;
const RETRY_MS = 1_000;
/** Lines are written in batches. A thread and a system call for each line would take a tenth of the time of a short request. */
const BATCH_MS = 10;
const BATCH_BYTES = 8 * 1024;

export class LogDestination {
  readonly #output: sonicBoom.SonicBoom;
  readonly #retry: NodeJS.Timeout;
  #batching: NodeJS.Timeout | undefined;
  #ended = false;

  /** @param onRecovery called with the number of dropped lines when the descriptor is writable again. It may call `write`. */
  constructor(fd: number, onRecovery: (lostLines: number) => void) {
    // With `minLength` set, `flush` also retries a write that failed.
    this.#output = new sonicBoom.SonicBoom({ fd, sync: false, minLength: BATCH_BYTES, maxLength: MAX_WAITING_BYTES });
    // The error is ignored, because the lines stay in the buffer, and the next line or the timer retries the write.
    this.#output.on('error', () => undefined);
    let lostLines = 0;
    this.#output.on('drop', (lines: string) => {
      lostLines += lines.split('\n').length - 1;
    });
    this.#output.on('drain', () => {
      const lost = lostLines;
      lostLines = 0;
      if (lost > 0) onRecovery(lost);
    });
    this.#retry = setInterval(() => this.#output.flush(), RETRY_MS).unref();
  }

  /** Buffers a line. Never throws and never blocks. */
  write(line: string): void {
    if (this.#ended) return;
    this.#output.write(limitLine(line));
    this.#batching ??= setTimeout(() => {
      this.#batching = undefined;
      this.#output.flush();
    }, BATCH_MS).unref();
  }

  /** Writes the buffered lines and closes the output within the deadline. Lines written later are dropped. */
  async end(deadlineMs: number): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    clearInterval(this.#retry);
    clearTimeout(this.#batching);
    const over = new Promise((resolve) => this.#output.once('close', resolve).once('error', resolve));
    this.#output.end();
    await inTime('the reader of the log', over, deadlineMs).catch(() => undefined);
  }
}

/** The size includes the newline. Docker splits longer lines into chunks of this size. */
export const MAX_LINE_BYTES = 16 * 1024;

/** Maximum characters per string and items per array or object, tried in order until the line is short enough. */
const LIMITS = [
  [4_096, 100],
  [1_024, 50],
  [256, 30],
  [60, 15],
] as const;
/** The characters to keep if a line is too long even with the smallest limits, because of deep nesting or very long names. */
const FALLBACK_CHARACTERS = 1_000;

/**
 * Returns the line, shortened if it is too long. A shortened line has `truncated: true`. Its long strings are cut and end in "…", and its
 * long arrays and objects lack their last items. If the line is still too long, only its first characters are kept, in the field `text`.
 * @param line one JSON object and a newline, as pino writes it
 */
export function limitLine(line: string): string {
  if (Buffer.byteLength(line) <= MAX_LINE_BYTES) return line;
  const fields: Record<string, unknown> = JSON.parse(line);
  for (const limit of LIMITS) {
    const shorter = `${JSON.stringify({ truncated: true, ...fields }, (_name, value) => shorten(value, limit))}\n`;
    if (Buffer.byteLength(shorter) <= MAX_LINE_BYTES) return shorter;
  }
  const { level, time, name } = fields;
  return `${JSON.stringify({ truncated: true, level, time, name, text: cut(line, FALLBACK_CHARACTERS) })}\n`;
}

function shorten(value: unknown, [characters, items]: (typeof LIMITS)[number]): unknown {
  if (typeof value === 'string') return cut(value, characters);
  if (Array.isArray(value)) return value.slice(0, items);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).slice(0, items));
}

/** Shortens a string without splitting a surrogate pair, because half a pair would be an invalid character. */
function cut(text: string, characters: number): string {
  if (text.length <= characters) return text;
  return `${text.slice(0, characters).replace(/[\uD800-\uDBFF]$/, '')}…`;
}
