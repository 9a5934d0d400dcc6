/** The queue that the ingest workers consume, seen from outside. */
import { QUEUE_NAME, replicated } from '@meterline/catalog';
import type { RedisClient } from '@meterline/service/access';
import { Queue, type Telemetry } from 'bullmq';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { CommandError } from '../failure.js';

export interface UsageQueueOptions {
  readonly prefix: string;
  /** How many replicas of Redis must have a job before it counts as sent. */
  readonly replicas: number;
  /** Puts a trace into each job, which the worker goes on with. */
  readonly telemetry?: Telemetry | undefined;
}

export class UsageQueue {
  readonly #redis: RedisClient;
  readonly #replicas: number;
  readonly #queue: Queue;
  /** What the last jobs were written on; undefined: none since the disk was asked. */
  #writtenOn: Redis['stream'] | undefined;

  /** @param redis connected; stays the caller's to close, and to listen to for connection errors */
  constructor(redis: RedisClient, { prefix, replicas, telemetry }: UsageQueueOptions) {
    this.#redis = redis;
    this.#replicas = replicas;
    this.#queue = new Queue(QUEUE_NAME, { connection: redis, prefix, ...(telemetry && { telemetry }) });
    // The same errors reject the command that was under way.
    this.#queue.on('error', () => undefined);
  }

  /**
   * Puts this data into the queue as one job, whatever it is. One job, one command: when it rejects, every job before it is in its
   * queue; this one may be. Sending events again is harmless, because their ids make them the same events.
   * @returns the job's id
   */
  async send(data: unknown): Promise<string> {
    await this.#queue.waitUntilReady();
    this.#writtenOn ??= this.#redis.stream;
    const { id = '' } = await replicated(this.#redis, () => this.#queue.add('usage', data), {
      replicas: this.#replicas,
      withinMs: ANSWER_WITHIN_MS,
    });
    return id;
  }

  /**
   * Resolves when Redis has on its disk what was sent since the last call. Redis can say so from 7.2 on, and only with an
   * append-only file; of any other it is only known that it has answered, as it does to every producer.
   * @throws CommandError when the disk takes too long, or the connection was another before
   */
  async writtenToDisk(): Promise<void> {
    const stream = this.#writtenOn;
    if (!stream) return;
    this.#writtenOn = undefined;
    await requireWritten(this.#redis);
    // A new connection has written nothing, and Redis answers for that alone.
    if (this.#redis.stream !== stream) throw new CommandError('the connection to Redis was lost; try again');
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }
}

const ANSWER_WITHIN_MS = 10_000;

/** Its own, and those of replicas. */
const disksReached = z.tuple([z.number(), z.number()]);

async function requireWritten(redis: Redis): Promise<void> {
  if (!reportsItsDisk(await redis.info('server'), await redis.info('persistence'))) return;
  const [local] = disksReached.parse(await redis.call('WAITAOF', 1, 0, ANSWER_WITHIN_MS));
  if (local === 1) return;
  throw new CommandError(`Redis has not written to its disk within ${ANSWER_WITHIN_MS / 1000} s; try again later`);
}

/** @param server, persistence the sections of INFO. Source: Redis documentation, WAITAOF */
export function reportsItsDisk(server: string, persistence: string): boolean {
  const [, major = 0, minor = 0] = /^redis_version:(\d+)\.(\d+)/m.exec(server) ?? [];
  const isRecent = Number(major) > 7 || (Number(major) === 7 && Number(minor) >= 2);
  return isRecent && /^aof_enabled:1\r?$/m.test(persistence);
}
