/** What an emitter can be told, with defaults and limits. */
import { MAX_EVENTS_PER_JOB, MAX_QUEUE_SHARDS } from '@meterline/catalog/events';
import { EmitterError } from './errors.js';
import type { Report } from './problem.js';
import type { ApiKey } from './transport.js';

export interface EmitterOptions {
  /**
   * `https://…` or `http://…`: a collector. `redis://…`, `rediss://…`, `redis+sentinel://…` or
   * `redis+cluster://…`: the Redis of Meterline's queue.
   */
  readonly url: string;
  /** For a collector: a key with the role emitter, or a function that gives the one of an account before each attempt. */
  readonly apiKey?: ApiKey | undefined;
  /** For Redis: that of the workers; without it `bull`. */
  readonly queuePrefix?: string;
  /** For Redis: how many queues are filled in turn, as QUEUE_SHARDS says; without it 1. */
  readonly queueShards?: number;
  /** Keeps events on disk until they are sent. */
  readonly spool?: SpoolOptions;
  /** Unsent events in memory, in bytes of their JSON; without it 64 MiB. Events beyond that are dropped, or in the spool alone. */
  readonly memoryBytes?: number;
  /** The most events that are sent at once, 1 to 5,000; without it 500. */
  readonly batchEvents?: number;
  /** What is sent at once is not larger than this, in bytes of JSON, unless by one event; up to 4 MiB, without it 1. */
  readonly batchBytes?: number;
  /** How long an event waits for others, in milliseconds; without it 200. */
  readonly batchMs?: number;
  /** How many jobs or requests are on their way at once; without it 4. */
  readonly inFlight?: number;
  /** How often running timers report, in milliseconds; without it a minute. A crash loses at most so much of them. */
  readonly timerMs?: number;
  /** How long `add` sums, in milliseconds; without it 10 s. A crash loses at most so much of the sums. */
  readonly sumMs?: number;
  /** Called for refused and dropped events, outages, and trouble with the spool. Without it they are warnings of the process. */
  readonly onProblem?: Report;
}

export interface SpoolOptions {
  /** On a local disk, and for one process. It is created when there is none. */
  readonly directory: string;
  /** Of all its files; without it 1 GiB. */
  readonly maxBytes?: number;
  /**
   * How often what was written is forced to the disk, in milliseconds. Without it the operating system decides when: `kill -9` loses
   * nothing, a power cut may lose the last seconds.
   */
  readonly fsyncMs?: number;
}

const MIB = 1024 * 1024;
/** Of a timer of Node: for a longer time it waits a millisecond. */
export const LONGEST_MS = 2 ** 31 - 1;

export type CheckedOptions = ReturnType<typeof checkOptions>;

/** Whole numbers from 1 on: what they are when they are left out, and the highest. */
const NUMBERS = {
  queueShards: [1, MAX_QUEUE_SHARDS],
  memoryBytes: [64 * MIB, Number.MAX_SAFE_INTEGER],
  batchEvents: [500, MAX_EVENTS_PER_JOB],
  batchBytes: [MIB, 4 * MIB],
  batchMs: [200, LONGEST_MS],
  inFlight: [4, 64],
  timerMs: [60_000, LONGEST_MS],
  sumMs: [10_000, LONGEST_MS],
} as const satisfies { readonly [name in keyof EmitterOptions]?: readonly [number, number] };

/** @throws EmitterError `invalid_option` */
export function checkOptions(options: EmitterOptions) {
  const { spool } = options;
  const numbers = Object.entries(NUMBERS).map(([name, [unset, max]]) => {
    return [name, whole(name, options[name as keyof typeof NUMBERS] ?? unset, max)];
  });
  return {
    ...options,
    ...(Object.fromEntries(numbers) as Record<keyof typeof NUMBERS, number>),
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
