/** Masters of a Redis Cluster are killed or frozen; others go on, or replicas take their places. */
import type { RedisCluster } from '../redis-topology.js';
import { clickhouseKilled } from './clickhouse-faults.js';
import type { Fault, Scene } from './fault.js';
import { awayFor, killAndStart } from './strikes.js';
import { workerOfTwoKilled } from './worker-faults.js';

export const masterKilled: Fault = {
  name: 'master-killed',
  injects: '`kill -9` of one of three masters of a Redis Cluster, once or twice, restarted with its append-only file',
  workers: 2,
  proxied: 'nothing',
  weight: 14,
  redis: 'cluster',
  strike: (scene) => {
    const cluster = clusterOf(scene);
    return killAndStart(scene, () => {
      const master = scene.random.pick(cluster.masters);
      return { kill: () => master.kill(), start: () => cluster.restart(master) };
    });
  },
};

export const masterFrozen: Fault = {
  name: 'master-frozen',
  injects: 'SIGSTOP of one of three masters of a Redis Cluster, for up to twenty seconds; then SIGCONT',
  workers: 2,
  proxied: 'nothing',
  weight: 8,
  redis: 'cluster',
  strike: (scene) => {
    const master = scene.random.pick(clusterOf(scene).masters);
    master.signal('SIGSTOP');
    return awayFor([3_000, 20_000], scene, () => master.signal('SIGCONT'));
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
  strike: (scene) => {
    const cluster = clusterOf(scene);
    return killAndStart(scene, async () => {
      const master = scene.random.pick(await cluster.mastersNow());
      const kill = async () => {
        await master.kill();
        await cluster.replaced(master);
      };
      return { kill, start: () => cluster.restart(master) };
    });
  },
};

function clusterOf({ site }: Scene): RedisCluster {
  if (!site.cluster) throw new Error('this fault needs a Redis Cluster');
  return site.cluster;
}
