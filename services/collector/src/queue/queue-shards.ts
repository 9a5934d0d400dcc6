/**
 * The queues that events are written to in turn, each on a connection of its own: one whose server is away or not durable holds up
 * no other.
 */
import { parseRedisUrl, queuePrefixOf, ShardTurns } from '@meterline/catalog';
import { connectRedis, StartError } from '@meterline/service';
import type { Telemetry } from 'bullmq';
import type { Logger } from 'pino';
import type { JobEvents } from '../events/check.js';
import { Durability, UNREPLICATED } from './durability.js';
import { createQueueConnection, EventQueue, isAnswer } from './event-queue.js';

export interface QueueShardsOptions {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly shards: number;
  /** See {@link Durability}. */
  readonly isAssumed: boolean;
  readonly writeMs: number;
  readonly telemetry: Telemetry | undefined;
  readonly log: Logger;
}

interface Shard {
  readonly queue: EventQueue;
  readonly durability: Durability;
  readonly disconnect: () => void;
}

export class QueueShards {
  readonly #shards: readonly Shard[];
  readonly #turns: ShardTurns;

  readonly #writeMs: number;

  private constructor(shards: readonly Shard[], writeMs: number) {
    this.#shards = shards;
    this.#writeMs = writeMs;
    this.#turns = new ShardTurns(shards.length);
  }

  /** @throws StartError when Redis does not answer, or is not durable; a node of a Redis Cluster that is away is waited for */
  static async open(options: QueueShardsOptions): Promise<QueueShards> {
    const opening = Array.from({ length: options.shards }, (_, shard) => openShard(options, shard));
    const outcomes = await Promise.allSettled(opening);
    const shards = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    const failure = outcomes.find((outcome) => outcome.status === 'rejected');
    if (!failure) return new QueueShards(shards, options.writeMs);
    for (const { disconnect } of shards) disconnect();
    throw failure.reason;
  }

  /**
   * Writes a job to the queue whose turn it is, or if that fails to the next one: in two of them the same events are harmless.
   * @throws the last error, when none has taken it in the time for a write
   */
  async add(events: JobEvents): Promise<void> {
    const startedAt = performance.now();
    for (let attempt = 1; ; attempt += 1) {
      const turn = this.#turns.next(performance.now());
      try {
        await this.#add(turn, events);
        this.#turns.took(turn);
        return;
      } catch (error) {
        this.#turns.failed(turn, performance.now());
        if (attempt >= this.#shards.length || performance.now() - startedAt >= this.#writeMs) throw error;
      }
    }
  }

  async #add(turn: number, events: JobEvents): Promise<void> {
    const shard = this.#shards[turn];
    if (!shard) throw new Error(`there is no queue ${turn}`);
    await shard.durability.require();
    await shard.queue.add(events);
  }

  /** Resolves when one of them would take events. @throws as the first of them otherwise */
  async require(): Promise<void> {
    const outcomes = await Promise.allSettled(this.#shards.map(({ durability }) => durability.require()));
    const [first] = outcomes;
    if (first?.status === 'rejected' && outcomes.every(({ status }) => status === 'rejected')) throw first.reason;
  }

  /** What cannot be done although {@link require} resolves; undefined: nothing. */
  async limit(): Promise<string | undefined> {
    const outcomes = await Promise.allSettled(this.#shards.map(({ durability }) => durability.require()));
    const away = outcomes.filter(({ status }) => status === 'rejected').length;
    return away === 0 ? undefined : `takes no events for ${away} of ${outcomes.length} queues; the others get them`;
  }

  disconnect(): void {
    for (const { disconnect } of this.#shards) disconnect();
  }
}

async function openShard(options: QueueShardsOptions, shard: number): Promise<Shard> {
  const { redisUrl, isAssumed, writeMs, telemetry, log } = options;
  const redis = createQueueConnection(redisUrl);
  const disconnect = () => redis.disconnect();
  try {
    await connectRedis(redis, redisUrl);
    // The same errors reject what is being written.
    redis.on('error', () => undefined);
    const prefix = queuePrefixOf(options.prefix, shard, redis.isCluster);
    const { form, replicas } = parseRedisUrl(redisUrl);
    if (form === 'sentinel' && replicas === 0 && !isAssumed) throw new StartError(`Redis ${UNREPLICATED}`);
    const queue = new EventQueue({ redis, prefix, replicas, writeMs, telemetry });
    await queue.open();
    const durability = new Durability({
      redis,
      server: () => queue.server,
      mayFailOver: form === 'cluster' && replicas === 0,
      isAssumed,
      answerMs: writeMs,
    });
    const fault = await durability.fault().catch((err: unknown) => {
      // A node of a Redis Cluster: it is asked again before each write, and until it answers the other queues get the events.
      if (form !== 'cluster' || isAnswer(err)) throw err;
      log.warn({ event: 'queue_away', shard, err }, 'the Redis of a queue does not answer; the others get its events');
      return undefined;
    });
    if (fault !== undefined) throw new StartError(`Redis ${fault}`);
    return { queue, durability, disconnect };
  } catch (error) {
    disconnect();
    throw error;
  }
}
