/**
 * The queue that events are written to, on a connection of its own, while Redis is durable. A write ends after some seconds, whatever Redis
 * does: BullMQ by itself waits without end. What is not known to be durable is reported as not accepted; sending the same events
 * again is harmless.
 */

import { QUEUE_NAME } from '@meterline/catalog';
import { connectRedis, inTime, StartError } from '@meterline/service';
import {
  createRedisClient,
  leaveConnection,
  NotReplicated,
  type RedisClient,
  redisFailureKind,
  replicated,
} from '@meterline/service/access';
import { parseRedisUrl } from '@meterline/service/redis-address';
import { Queue, type Telemetry } from 'bullmq';
import { Durability } from './durability.js';

const CONNECT_WITHIN_MS = 2_000;
const LONGEST_RECONNECT_MS = 1_000;
const JOB_NAME = 'usage';
const UNREPLICATED =
  'Redis may lose events together with a master, whose replica takes its place: add ?replicas=1 to REDIS_URL';
/** Of the time for a write: replicas that are late are an answer, and no reason to connect again. */
const WAIT_SHARE = 0.75;

interface UsageQueueOptions {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly writeMs: number;
  readonly telemetry: Telemetry | undefined;
}

export class UsageQueue {
  readonly #redis: RedisClient;
  readonly #queue: Queue;
  readonly #durability: Durability;
  /** How many replicas must have the events before they count as taken. */
  readonly #replicas: number;
  readonly #writeMs: number;

  private constructor(redis: RedisClient, { redisUrl, prefix, writeMs, telemetry }: UsageQueueOptions) {
    const { masterName, replicas, isDurabilityAssumed: isAssumed } = parseRedisUrl(redisUrl);
    if (masterName !== undefined && replicas === 0 && !isAssumed) throw new StartError(UNREPLICATED);
    this.#redis = redis;
    this.#replicas = replicas;
    this.#writeMs = writeMs;
    this.#durability = new Durability({ redis, isAssumed, answerMs: writeMs });
    this.#queue = new Queue(QUEUE_NAME, { connection: redis, prefix, ...(telemetry && { telemetry }) });
    // The same errors reject what is being written, and the connection's outage is logged where it is watched.
    this.#queue.on('error', () => undefined);
  }

  /** @throws StartError when Redis does not answer, or is not durable */
  static async open(options: UsageQueueOptions): Promise<UsageQueue> {
    const redis = createQueueConnection(options.redisUrl);
    try {
      await connectRedis(redis, options.redisUrl);
      // The same errors reject what is being written.
      redis.on('error', () => undefined);
      const queue = new UsageQueue(redis, options);
      await queue.#queue.waitUntilReady();
      const fault = await queue.#durability.fault();
      if (fault !== undefined) throw new StartError(`Redis ${fault}`);
      return queue;
    } catch (error) {
      redis.disconnect();
      throw error;
    }
  }

  /**
   * Adds a job with these events. It is in the queue, durable, when this resolves.
   * @throws when Redis refuses, is away, is not durable, or does not answer in time; the job may be in the queue all the same
   */
  async add(events: readonly object[]): Promise<void> {
    await this.#durability.require();
    const withinMs = Math.ceil(this.#writeMs * WAIT_SHARE);
    const add = () => this.#queue.add(JOB_NAME, { events });
    try {
      await inTime('Redis', replicated(this.#redis, add, { replicas: this.#replicas, withinMs }), this.#writeMs);
    } catch (error) {
      // What was not sent yet would stay in memory for as long as the other end is silent.
      if (redisFailureKind(error) !== 'refused' && !(error instanceof NotReplicated)) leaveConnection(this.#redis);
      throw error;
    }
  }

  /** Resolves when it would take events. @throws otherwise */
  async require(): Promise<void> {
    await this.#durability.require();
  }

  disconnect(): void {
    this.#redis.disconnect();
  }
}

/**
 * A command fails at once while there is no connection, and is not sent again behind our back: the same events in two jobs are harmless.
 */
function createQueueConnection(url: string): RedisClient {
  return createRedisClient(url, {
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_WITHIN_MS,
    // A connection whose other end is silent does not hold up the end of the process.
    disconnectTimeout: 100,
    retryStrategy: (attempt) => Math.min(attempt * 50, LONGEST_RECONNECT_MS),
  });
}
