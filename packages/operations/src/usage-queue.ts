/** The queues that the ingest workers consume, seen from outside. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisClient } from '@meterline/access';
import { jobIdIn, QUEUE_NAME, queuePrefixOf, replicated, ShardTurns, serverFinder } from '@meterline/catalog';
import { Queue, type Telemetry } from 'bullmq';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { OperationError } from './operation-error.js';

/** BullMQ's states as a producer sees them. */
export type JobProgress = 'pending' | 'stored' | 'failed';

export interface UsageQueueOptions {
  readonly prefix: string;
  /** How many queues are filled in turn. */
  readonly shards: number;
  /** How many replicas of Redis must have a job before it counts as sent. */
  readonly replicas: number;
  /** Puts a trace into each job, which the worker goes on with. */
  readonly telemetry?: Telemetry | undefined;
}

interface Shard {
  readonly queue: Queue;
  readonly server: () => Redis;
  /** What the last jobs were written on; undefined: none since the disk was asked. */
  written?: { readonly server: Redis; readonly stream: Redis['stream'] };
}

export class UsageQueue {
  readonly #redis: RedisClient;
  readonly #options: UsageQueueOptions;
  readonly #turns: ShardTurns;
  readonly #shards = new Map<number, Promise<Shard>>();

  /** @param redis connected; stays the caller's to close, and to listen to for connection errors */
  constructor(redis: RedisClient, options: UsageQueueOptions) {
    this.#redis = redis;
    this.#options = options;
    this.#turns = new ShardTurns(options.shards);
  }

  /**
   * Puts the events into a queue as one job, as they are. One job, one command: when it rejects, every job before
   * it is in its queue; this one may be. Sending events again is harmless, because their ids make them the same events.
   * @param events 1 to 5,000
   * @returns the job's id
   */
  async send(events: readonly unknown[]): Promise<string> {
    return this.sendJob({ events });
  }

  /** Puts this data into a queue as one job, whatever it is. @returns the job's id */
  async sendJob(data: unknown): Promise<string> {
    const turn = this.#turns.next(performance.now());
    const shard = await this.#shard(turn);
    const server = shard.server();
    shard.written ??= { server, stream: server.stream };
    const add = () => shard.queue.add('usage', data);
    const { id } = await replicated(add, shard.server, {
      replicas: this.#options.replicas,
      withinMs: ANSWER_WITHIN_MS,
    });
    return jobIdIn(turn, id);
  }

  /** A job that is gone counts as stored: workers keep only so many of those that are done. */
  async progressOf(jobId: string): Promise<JobProgress> {
    const [, shard = '0', id = ''] = /^(?:(\d{1,2}):)?(.*)$/s.exec(jobId) ?? [];
    const state = await (await this.#shard(Number(shard))).queue.getJobState(id);
    if (state === 'failed') return 'failed';
    return state === 'completed' || state === 'unknown' ? 'stored' : 'pending';
  }

  /**
   * Resolves when Redis has on its disk what was sent since the last call. Redis can say so from 7.2 on, and only with an
   * append-only file; of any other it is only known that it has answered, as it does to every producer.
   * @throws OperationError when the disk takes too long, or the connection was another before
   */
  async writtenToDisk(): Promise<void> {
    for (const opened of this.#shards.values()) {
      const shard = await opened;
      const { written } = shard;
      delete shard.written;
      if (!written) continue;
      const { server, stream } = written;
      await requireWritten(server);
      // A new connection has written nothing, and Redis answers for that alone.
      if (shard.server() !== server || server.stream !== stream) {
        throw new OperationError('the connection to Redis was lost; try again');
      }
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#shards.values()].map(async (shard) => (await shard).queue.close()));
  }

  #shard(number: number): Promise<Shard> {
    const shard = this.#shards.get(number) ?? this.#open(number);
    this.#shards.set(number, shard);
    return shard;
  }

  async #open(number: number): Promise<Shard> {
    const { prefix, telemetry } = this.#options;
    const queue = new Queue(QUEUE_NAME, {
      connection: this.#redis,
      prefix: queuePrefixOf(prefix, number, this.#redis.isCluster),
      ...(telemetry && { telemetry }),
    });
    // The same errors reject the command that was under way.
    queue.on('error', () => undefined);
    return { queue, server: await serverFinder(this.#redis, queue.toKey('wait')) };
  }
}

const ANSWER_WITHIN_MS = 10_000;

/** Its own, and those of replicas. */
const disksReached = z.tuple([z.number(), z.number()]);

async function requireWritten(redis: Redis): Promise<void> {
  if (!reportsItsDisk(await redis.info('server'), await redis.info('persistence'))) return;
  const [local] = disksReached.parse(await redis.call('WAITAOF', 1, 0, ANSWER_WITHIN_MS));
  if (local === 1) return;
  throw new OperationError(`Redis has not written to its disk within ${ANSWER_WITHIN_MS / 1000} s; try again later`);
}

/** @param server, persistence the sections of INFO. Source: Redis documentation, WAITAOF */
export function reportsItsDisk(server: string, persistence: string): boolean {
  const [, major = 0, minor = 0] = /^redis_version:(\d+)\.(\d+)/m.exec(server) ?? [];
  const isRecent = Number(major) > 7 || (Number(major) === 7 && Number(minor) >= 2);
  return isRecent && /^aof_enabled:1\r?$/m.test(persistence);
}

const POLL_MS = 100;
const STALL_NOTICE_MS = 10_000;

export interface StorageWaitOptions {
  readonly progressOf: (jobId: string) => Promise<JobProgress>;
  /** How long to wait while nothing moves. */
  readonly patienceMs: number;
  readonly signal: AbortSignal;
  readonly onProgress: (jobsDone: number) => void;
  /** Called once each time nothing has moved for a while. */
  readonly onStall: () => void;
  readonly pollMs?: number;
}

export interface StorageOutcome {
  readonly stored: number;
  readonly failed: number;
  /** Jobs still in the queue: patience has ended, or the wait was interrupted. Nothing of them is lost. */
  readonly pending: number;
}

/**
 * Waits until the ingest workers have stored these jobs, oldest first, so that other producers on the same queue do not
 * matter. A job is done when its rows are durable: workers acknowledge no earlier.
 */
export async function waitUntilStored(jobIds: readonly string[], options: StorageWaitOptions): Promise<StorageOutcome> {
  const { progressOf, patienceMs, signal, onProgress, onStall, pollMs = POLL_MS } = options;
  let failed = 0;
  let done = 0;
  let movedAt = performance.now();
  let noticed = false;
  while (done < jobIds.length && !signal.aborted) {
    const state = await progressOf(jobIds[done] ?? '');
    if (state !== 'pending') {
      if (state === 'failed') failed += 1;
      done += 1;
      movedAt = performance.now();
      noticed = false;
      onProgress(done);
      continue;
    }
    const idleMs = performance.now() - movedAt;
    if (idleMs >= patienceMs) break;
    if (idleMs >= STALL_NOTICE_MS && !noticed) {
      noticed = true;
      onStall();
    }
    await sleep(pollMs);
  }
  return { stored: done - failed, failed, pending: jobIds.length - done };
}
