/** The queues of a round: one on one server, or two in a Redis Cluster. */
import { createRedisClient, type RedisClient } from '@meterline/access';
import { QUEUE_NAME, queuePrefixOf } from '@meterline/catalog';
import { Queue } from 'bullmq';
import type { RedisCluster } from '../redis-topology.js';

/** `cluster`: masters that come back with their disks. `replicated`: masters in whose places replicas come. */
export type RedisForm = 'server' | 'cluster' | 'replicated';

export const QUEUES_IN_CLUSTER = 2;

/** Where a round's queues are. */
export interface QueuePlaces {
  /** QUEUE_PREFIX of its processes. */
  readonly prefix: string;
  /** Of each queue the prefix that BullMQ has. */
  readonly prefixes: readonly string[];
}

/** In a Cluster each queue is on a master of its own. */
export async function placesOf(name: string, cluster: RedisCluster | undefined): Promise<QueuePlaces> {
  if (!cluster) return { prefix: name, prefixes: [name] };
  for (let n = 0; ; n += 1) {
    const prefix = `${name}-${n}`;
    const prefixes = Array.from({ length: QUEUES_IN_CLUSTER }, (_, shard) => queuePrefixOf(prefix, shard, true));
    const masters = await Promise.all(prefixes.map((own) => cluster.masterOf(own)));
    if (new Set(masters).size === prefixes.length) return { prefix, prefixes };
  }
}

/** What the round itself sees of its queues, on a connection that waits while Redis is away. */
export class RoundQueues {
  readonly #redis: RedisClient;
  readonly #queues: readonly Queue[];

  constructor(redisUrl: string, { prefixes }: QueuePlaces) {
    this.#redis = createRedisClient(redisUrl, { maxRetriesPerRequest: null, waitsForNodes: true });
    // Errors are expected while the fault stops Redis.
    this.#redis.on('error', () => undefined);
    this.#queues = prefixes.map((prefix) => new Queue(QUEUE_NAME, { connection: this.#redis, prefix }));
    for (const queue of this.#queues) queue.on('error', () => undefined);
  }

  /** Whether a job is in work. */
  async isBusy(): Promise<boolean> {
    const active = await Promise.all(this.#queues.map((queue) => queue.getActiveCount()));
    return active.some((jobs) => jobs > 0);
  }

  /** Counts the jobs that are not completed; a failed job is stuck until an operator handles it. */
  async openJobs(): Promise<number> {
    const counts = await Promise.all(this.#queues.map((queue) => queue.getJobCounts()));
    const open = counts.flatMap(({ completed: _, ...others }) => Object.values(others));
    return open.reduce((sum, jobs) => sum + jobs, 0);
  }

  disconnect(): void {
    this.#redis.disconnect();
  }
}
