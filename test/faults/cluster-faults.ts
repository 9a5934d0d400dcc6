/** Masters of a Redis Cluster are killed or frozen; others go on, or replicas take their places. */
import type { RedisCluster } from '../redis-topology.js';
import { clickhouseKilled } from './clickhouse-faults.js';
import type { Fault, Scene } from './fault.js';
import { pause } from './waiting.js';
import { workerOfTwoKilled } from './worker-faults.js';

export const masterKilled: Fault = {
  name: 'master-killed',
  injects: '`kill -9` of one of three masters of a Redis Cluster, once or twice, restarted with its append-only file',
  workers: 2,
  proxied: 'nothing',
  weight: 14,
  redis: 'cluster',
  strike: async (scene) => {
    const { random, signal } = scene;
    for (let times = random.integer(1, 2); times > 0; times -= 1) {
      const cluster = clusterOf(scene);
      const master = random.pick(cluster.masters);
      await master.kill();
      await pause(random.integer(0, 3_000), signal);
      await cluster.restart(master);
      await pause(random.integer(0, 600), signal);
    }
  },
};

export const masterFrozen: Fault = {
  name: 'master-frozen',
  injects: 'SIGSTOP of one of three masters of a Redis Cluster, for up to twenty seconds; then SIGCONT',
  workers: 2,
  proxied: 'nothing',
  weight: 8,
  redis: 'cluster',
  strike: async (scene) => {
    const { random, brief, signal } = scene;
    const master = random.pick(clusterOf(scene).masters);
    master.signal('SIGSTOP');
    try {
      await pause(brief ? 3_000 : random.pick([3_000, 20_000]), signal);
    } finally {
      master.signal('SIGCONT');
    }
  },
};

export const workerAndMaster: Fault = {
  name: 'worker-and-master',
  injects: 'a master of a Redis Cluster is killed while workers are, or while ClickHouse is',
  workers: 2,
  proxied: 'nothing',
  weight: 8,
  redis: 'cluster',
  strike: async (scene) => {
    const other = scene.random.pick([workerOfTwoKilled, clickhouseKilled]);
    const struck = await Promise.allSettled([masterKilled, other].map(({ strike }) => strike(scene)));
    for (const each of struck) if (each.status === 'rejected') throw each.reason;
  },
};

export const masterReplaced: Fault = {
  name: 'master-replaced',
  injects:
    '`kill -9` of one of three masters of a Redis Cluster, once or twice: its replica takes its place, and it comes back as a replica',
  workers: 2,
  proxied: 'nothing',
  weight: 14,
  redis: 'replicated',
  strike: async (scene) => {
    const { random, signal } = scene;
    for (let times = random.integer(1, 2); times > 0; times -= 1) {
      const cluster = clusterOf(scene);
      const master = random.pick(await cluster.mastersNow());
      await master.kill();
      await cluster.replaced(master);
      await pause(random.integer(0, 2_000), signal);
      await cluster.restart(master);
      await pause(random.integer(0, 600), signal);
    }
  },
};

function clusterOf({ site }: Scene): RedisCluster {
  if (!site.cluster) throw new Error('this fault needs a Redis Cluster');
  return site.cluster;
}
