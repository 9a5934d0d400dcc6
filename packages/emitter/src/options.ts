/** What an emitter can be told, with defaults and limits. */
import { MAX_EVENTS_PER_JOB } from '@meterline/catalog/plain';
import type { ApiKey } from './collector.js';
import { EmitterError, type Report } from './problems.js';

export interface EmitterOptions {
  /** The address of a collector, `https://…` or `http://…`. */
  readonly url: string;
  /** A key with the role emitter, or a function that returns it, called before each attempt. */
  readonly apiKey: ApiKey;
  /** Keeps events on disk until they are sent. */
  readonly spool?: SpoolOptions;
  /** Unsent events in memory, in bytes of their JSON; without it 64 MiB. Events beyond that are dropped, or in the spool alone. */
  readonly memoryBytes?: number;
  /** The most events that are sent at once, 1 to 5,000; without it 500. One request has at most 1 MiB of JSON, or a single event. */
  readonly batchEvents?: number;
  /** How long an event waits for others, in milliseconds; without it 200. */
  readonly batchMs?: number;
  /** How often sums and running timers become events, in milliseconds; without it 30 s. A crash loses at most so much of them. */
  readonly reportMs?: number;
  /** Without it the platform's, which ignores HTTPS_PROXY in Node 20. */
  readonly fetch?: typeof fetch;
  /** Called for rejected and dropped events, outages, and trouble with the spool. Without it they are warnings of the process. */
  readonly onProblem?: Report;
}

export interface SpoolOptions {
  /** On a local disk, and for one process. It is created when there is none. */
  readonly directory: string;
  /** The most bytes of all files in the spool; without it 1 GiB. */
  readonly maxBytes?: number;
  /**
   * How often what was written is forced to the disk, in milliseconds. Without it the operating system decides when: `kill -9` loses
   * nothing, a power cut may lose the last seconds.
   */
  readonly fsyncMs?: number;
}

const MIB = 1024 * 1024;
/** The longest time of Node's timers: for more they wait a millisecond. */
export const LONGEST_MS = 2 ** 31 - 1;

export type CheckedOptions = ReturnType<typeof checkOptions>;

/** @throws EmitterError `invalid_option` */
export function checkOptions(options: EmitterOptions) {
  const { spool } = options;
  return {
    ...options,
    memoryBytes: whole('memoryBytes', options.memoryBytes ?? 64 * MIB),
    batchEvents: whole('batchEvents', options.batchEvents ?? 500, MAX_EVENTS_PER_JOB),
    batchMs: whole('batchMs', options.batchMs ?? 200, LONGEST_MS),
    reportMs: whole('reportMs', options.reportMs ?? 30_000, LONGEST_MS),
    spool: spool && {
      directory: spool.directory,
      maxBytes: whole('spool.maxBytes', spool.maxBytes ?? 1024 * MIB),
      fsyncMs: spool.fsyncMs === undefined ? undefined : whole('spool.fsyncMs', spool.fsyncMs, LONGEST_MS),
    },
  };
}

function whole(name: string, value: number, max = Number.MAX_SAFE_INTEGER): number {
  if (Number.isInteger(value) && value >= 1 && value <= max) return value;
  throw new EmitterError('invalid_option', `${name} must be a whole number from 1 to ${max}, not ${value}`);
}
