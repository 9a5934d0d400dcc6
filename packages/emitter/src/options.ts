/** Emitter options, with defaults and limits. */
import { MAX_EVENTS_PER_JOB } from '@meterline/catalog/plain';
import type { ApiKey } from './collector.js';
import { EmitterError, type Report } from './problems.js';

export interface EmitterOptions {
  /** Address of a collector, starting with `https://` or `http://`. */
  readonly url: string;
  /** A key with the role emitter, or a function that returns such a key. The emitter calls the function before each attempt. */
  readonly apiKey: ApiKey;
  /** Stores events on disk until they are sent (default: only in memory). */
  readonly spool?: SpoolOptions;
  /** Maximum bytes of unsent events in memory, as JSON (default: 64 MiB). Beyond it, events go only to the spool, or are dropped. */
  readonly memoryBytes?: number;
  /** Maximum number of events per request, 1 to 5,000 (default: 500). A request with several events has at most 1 MiB of JSON. */
  readonly batchEvents?: number;
  /** Maximum milliseconds an event waits for a batch to fill (default: 200). */
  readonly batchMs?: number;
  /** Interval in milliseconds at which sums and timers become events (default: 30,000). A crash loses the usage of at most one interval. */
  readonly reportMs?: number;
  /** A replacement for the global `fetch`. In Node 20, the global `fetch` ignores HTTPS_PROXY. */
  readonly fetch?: typeof fetch;
  /** Called for rejected and dropped events, outages, and problems of the spool (default: emits process warnings). */
  readonly onProblem?: Report;
}

export interface SpoolOptions {
  /** A folder on a local disk that only one process uses. Created if missing. */
  readonly directory: string;
  /** Maximum total bytes of the files (default: 1 GiB). */
  readonly maxBytes?: number;
  /**
   * Interval in milliseconds at which written events are flushed to disk with fsync (default: no fsync, the operating system decides).
   * Without fsync, `kill -9` loses no events, but a power cut can lose the last seconds.
   */
  readonly fsyncMs?: number;
}

const MIB = 1024 * 1024;
/** Maximum delay of a timer in Node. A timer with a longer delay fires after 1 ms. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

export type CheckedOptions = ReturnType<typeof checkOptions>;

/** Validates the options and fills in the defaults. @throws EmitterError `invalid_option` */
export function checkOptions(options: EmitterOptions) {
  const { spool } = options;
  return {
    ...options,
    memoryBytes: whole('memoryBytes', options.memoryBytes ?? 64 * MIB),
    batchEvents: whole('batchEvents', options.batchEvents ?? 500, MAX_EVENTS_PER_JOB),
    batchMs: whole('batchMs', options.batchMs ?? 200, MAX_TIMER_MS),
    reportMs: whole('reportMs', options.reportMs ?? 30_000, MAX_TIMER_MS),
    spool: spool && {
      directory: folder('spool.directory', spool.directory),
      maxBytes: whole('spool.maxBytes', spool.maxBytes ?? 1024 * MIB),
      fsyncMs: spool.fsyncMs === undefined ? undefined : whole('spool.fsyncMs', spool.fsyncMs, MAX_TIMER_MS),
    },
  };
}

function folder(name: string, value: string): string {
  if (typeof value === 'string' && value !== '') return value;
  throw new EmitterError(
    'invalid_option',
    `${name} must be the path of a folder, as in spool: { directory: "usage-spool" }`,
  );
}

function whole(name: string, value: number, max = Number.MAX_SAFE_INTEGER): number {
  if (Number.isInteger(value) && value >= 1 && value <= max) return value;
  throw new EmitterError('invalid_option', `${name} must be a whole number from 1 to ${max}, not ${value}`);
}
