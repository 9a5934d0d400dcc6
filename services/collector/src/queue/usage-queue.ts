/**
 * Writes events to the queue on a dedicated connection, as long as Redis is durable. Each write has a timeout, because BullMQ itself waits
 * forever. A write with an unknown outcome is reported as failed. The sender may safely send the same events again.
 */
import { requireFit } from '@meterline/api';
import { QUEUE_NAME } from '@meterline/catalog';
import { connectRedis, inTime, StartError } from '@meterline/service';
import {
  createRedisClient,
  leaveConnection,
  NotReplicated,
  REDIS_POLICIES,
  type RedisClient,
  redisFailureKind,
  replicated,
} from '@meterline/service/access';
import { parseRedisUrl } from '@meterline/service/redis-address';
import { Queue, type Telemetry } from 'bullmq';
import { Durability } from './durability.js';

const JOB_NAME = 'usage';
const UNREPLICATED =
  'Redis may lose events together with a master, whose replica takes its place: add ?replicas=1 to REDIS_URL';
/** Replicas must confirm a write within this share of its timeout. Late replicas then cause their own error, and the connection stays. */
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
  readonly #replicas: number;
  readonly #writeMs: number;

  private constructor(redis: RedisClient, { redisUrl, prefix, writeMs, telemetry }: UsageQueueOptions) {
    const { masterName, replicas, isDurabilityAssumed: isAssumed } = parseRedisUrl(redisUrl);
    if (masterName !== undefined && replicas === 0 && !isAssumed) throw new StartError(UNREPLICATED);
    this.#redis = redis;
    this.#replicas = replicas;
    this.#writeMs = writeMs;
    this.#durability = new Durability({ redis, isAssumed, timeoutMs: writeMs });
    this.#queue = new Queue(QUEUE_NAME, { connection: redis, prefix, ...(telemetry && { telemetry }) });
    // Errors of the queue are ignored here, because they also reject the write in progress, and the service logs the outage.
    this.#queue.on('error', () => undefined);
  }

  /** @throws StartError if Redis is unreachable or not durable */
  static async open(options: UsageQueueOptions): Promise<UsageQueue> {
    const redis = createRedisClient(options.redisUrl, REDIS_POLICIES.producer);
    try {
      await connectRedis(redis, options.redisUrl);
      // Errors of the connection are ignored here, because they also reject the write in progress.
      redis.on('error', () => undefined);
      const queue = new UsageQueue(redis, options);
      await queue.#queue.waitUntilReady();
      const problem = await queue.#durability.problem();
      if (problem !== undefined) throw new StartError(`Redis ${problem}`);
      return queue;
    } catch (error) {
      redis.disconnect();
      throw error;
    }
  }

  /**
   * Adds a job with these events. Resolves once the job is durable.
   * @throws if Redis rejects the job, is unreachable, is not durable, or does not reply in time. The job may be in the queue nevertheless.
   */
  async add(events: readonly object[]): Promise<void> {
    await this.require();
    const timeoutMs = Math.ceil(this.#writeMs * WAIT_SHARE);
    const add = () => this.#queue.add(JOB_NAME, { events });
    try {
      await inTime('Redis', replicated(this.#redis, add, { replicas: this.#replicas, timeoutMs }), this.#writeMs);
    } catch (error) {
      // Drop the connection, because a connection without replies would keep unsent jobs in memory.
      if (redisFailureKind(error) !== 'rejected' && !(error instanceof NotReplicated)) leaveConnection(this.#redis);
      throw error;
    }
  }

  /** @throws UnusableServerError if the queue cannot accept events */
  async require(): Promise<void> {
    requireFit(await this.#durability.problem());
  }

  disconnect(): void {
    this.#redis.disconnect();
  }
}
