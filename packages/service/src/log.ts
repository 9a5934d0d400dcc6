/**
 * A service's log, and what keeps it short while something is away. It goes to a file descriptor, written in the background, which may stall, be
 * full or be gone: lines are then kept up to a bound, later ones are lost and counted, and the service goes on. Each line has a maximum length.
 *
 * Not `pino.destination`: an error of it that nobody handles ends the process, and what it has not written it tries to write when the process
 * exits, for ever if the disk is full.
 */
import { type DestinationStream, type Logger, pino } from 'pino';
import sonicBoom from 'sonic-boom';
import { connectionHint } from './connection-hint.js';
import { inTime } from './waiting.js';

/** How long the reader of the log has to take the last lines. */
const LAST_LINES_MS = 1_000;
const MINUTE_MS = 60_000;

/**
 * JSON lines on standard output, to be ended with {@link endLog}.
 * @param name the name of the service
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
 * Limits a line that one error may cause many times a second.
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
  #current: { readonly since: number; failures: number; warnedAt: number; err?: unknown } | undefined;

  /** @param consequence what the outage means until the server answers: "jobs stay in the queue until it does" */
  constructor(log: Logger, server: string, consequence: string, clock: () => number = Date.now) {
    this.#log = log;
    this.#server = server;
    this.#consequence = consequence;
    this.#clock = clock;
  }

  get isOn(): boolean {
    return this.#current !== undefined;
  }

  /** The last failure of the outage that is on. */
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
      [`${this.#server} does not answer`, connectionHint(err), this.#consequence].filter(Boolean).join('; '),
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

/** How much may wait to be written. */
const MAX_WAITING_BYTES = 1024 * 1024;
const RETRY_MS = 1_000;
/**
 * A line waits so long for others, or until there are so many bytes: a write of its own takes a thread and a call of the system, a tenth of
 * what a short request costs.
 */
const BATCH_MS = 10;
const MOST_BATCHED = 8 * 1024;

export class LogDestination {
  readonly #output: sonicBoom.SonicBoom;
  readonly #retry: NodeJS.Timeout;
  #batching: NodeJS.Timeout | undefined;
  #ended = false;

  /** @param onRecovery called when the descriptor takes lines again, with the number of those that were lost; it may write */
  constructor(fd: number, onRecovery: (lostLines: number) => void) {
    // With a least length `flush` also starts a write again that has failed.
    this.#output = new sonicBoom.SonicBoom({ fd, sync: false, minLength: MOST_BATCHED, maxLength: MAX_WAITING_BYTES });
    // What could not be written stays, and is tried again with the next line or by the timer. Where would we report it?
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

  /** Never throws, and never waits. */
  write(line: string): void {
    if (this.#ended) return;
    this.#output.write(limitLine(line));
    this.#batching ??= setTimeout(() => {
      this.#batching = undefined;
      this.#output.flush();
    }, BATCH_MS).unref();
  }

  /** Writes what is left, if that is possible and takes no longer than the deadline. Later lines are lost. */
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

/** The newline included. Docker hands on longer lines in parts of this size. */
export const MAX_LINE_BYTES = 16 * 1024;

/** Characters of one text, and items of one list or object: tried in this order until the line is short enough. */
const LIMITS = [
  [4_096, 100],
  [1_024, 50],
  [256, 30],
  [60, 15],
] as const;
/** What is kept of a line that none of the limits makes short enough: what lies very deep, or has very long names. */
const LEAST_CHARACTERS = 1_000;

/**
 * The line itself. If it is too long: the same fields with `truncated: true`, in which texts end in "…" where they were cut, and lists
 * and objects miss their last items; or at least how it begins, as `text`.
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
  return `${JSON.stringify({ truncated: true, level, time, name, text: cut(line, LEAST_CHARACTERS) })}\n`;
}

function shorten(value: unknown, [characters, items]: (typeof LIMITS)[number]): unknown {
  if (typeof value === 'string') return cut(value, characters);
  if (Array.isArray(value)) return value.slice(0, items);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).slice(0, items));
}

/** Whole characters: half a surrogate pair would be no valid text. */
function cut(text: string, characters: number): string {
  if (text.length <= characters) return text;
  return `${text.slice(0, characters).replace(/[\uD800-\uDBFF]$/, '')}…`;
}
