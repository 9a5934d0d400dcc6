/** One event a job through one, two and four queues of a Redis Cluster of four masters: what the busiest of them has to do. */
import { QUEUE_NAME, queuePrefixOf } from '@meterline/catalog';
import { Queue } from 'bullmq';
import { startRedisCluster } from '../redis-topology.js';
import type { Bench } from './bench.js';
import { atMost, type Figure, median } from './figure.js';
import { processorMs } from './machine.js';
import { drainRates } from './usage-queue.js';

const DATABASE = 'queues';
const JOBS = 4_000;
const MASTERS = 4;
const SHARDS = [1, 2, 4] as const;
/** The first is the warm-up. */
const RUNS = 4;

type Cluster = Awaited<ReturnType<typeof startRedisCluster>>;

interface Run {
  readonly jobsPerSecond: number;
  /** Processor time of the busiest master, in microseconds a job. */
  readonly busiest: number;
}

export const queues: Bench = {
  name: 'queues',
  async run({ site }) {
    await site.warehouse(DATABASE);
    const cluster = await startRedisCluster(MASTERS);
    const redis = cluster.connect();
    try {
      const prefix = await prefixApart(cluster);
      const all = Array.from({ length: MASTERS }, (_, shard) => {
        return new Queue(QUEUE_NAME, { connection: redis, prefix: queuePrefixOf(prefix, shard, true) });
      });
      const env = {
        REDIS_URL: cluster.url,
        QUEUE_PREFIX: prefix,
        QUEUE_SHARDS: String(MASTERS),
        CLICKHOUSE_DATABASE: DATABASE,
      };
      const runs = new Map<number, Run[]>(SHARDS.map((shards) => [shards, []]));
      await site.withIngest(env, async () => {
        for (let run = 0; run < RUNS; run += 1) {
          for (const shards of SHARDS) runs.get(shards)?.push(await measure(cluster, all.slice(0, shards)));
        }
      });
      await Promise.all(all.map((queue) => queue.close()));
      return figures(new Map([...runs].map(([shards, [, ...measured]]) => [shards, measured])));
    } finally {
      redis.disconnect();
      await cluster.close();
      await site.drop(DATABASE);
    }
  },
};

/** Of queues each of which is on a master of its own. */
async function prefixApart(cluster: Cluster): Promise<string> {
  for (let n = 0; ; n += 1) {
    const tags = Array.from({ length: MASTERS }, (_, shard) => queuePrefixOf(`bench${n}`, shard, true));
    if (new Set(await Promise.all(tags.map((tag) => cluster.masterOf(tag)))).size === MASTERS) return `bench${n}`;
  }
}

async function measure(cluster: Cluster, shards: readonly Queue[]): Promise<Run> {
  const times = () => cluster.masters.map(({ pid }) => processorMs(pid) ?? 0);
  let spent: number[] = [];
  const jobsPerSecond = await drainRates(shards, JOBS, 1, {
    start: () => {
      const before = times();
      return () => {
        spent = times().map((ms, n) => ms - (before[n] ?? 0));
      };
    },
  });
  return { jobsPerSecond, busiest: (Math.max(...spent) * 1000) / JOBS };
}

function figures(runs: ReadonlyMap<number, readonly Run[]>): Figure[] {
  const values = (shards: number, field: keyof Run) => (runs.get(shards) ?? []).map((run) => run[field]);
  const alone = median(values(1, 'busiest'));
  return SHARDS.flatMap((shards): Figure[] => {
    const queues = shards === 1 ? 'one queue' : `${shards} queues`;
    const busiest = values(shards, 'busiest');
    return [
      {
        bench: 'queues',
        what: `processor time of the busiest Redis, ${queues}, a job of one event`,
        value: median(busiest),
        unit: 'µs',
        runs: busiest,
        ...(shards > 1 && { reach: atMost(median(busiest) / alone, 1.25 / shards) }),
      },
      {
        bench: 'queues',
        what: `one event a job, ${queues}, one worker`,
        value: median(values(shards, 'jobsPerSecond')),
        unit: 'jobs/s',
        runs: values(shards, 'jobsPerSecond'),
      },
    ];
  });
}
