import { expect, it } from '@jest/globals';
import { clusterSettings } from './clickhouse/hosts.js';
import { clusterProblem, type HostFacts, type Replica } from './shards.js';

const replica = (shard: number, address: string, changes: Partial<Replica> = {}): Replica => ({
  ...{ shard, address, weight: 1, isLocal: false },
  ...changes,
});
const LOCAL = replica(1, 'a:9000', { isLocal: true });
const TWO_SHARDS = [LOCAL, replica(2, 'b:9000')];
const TWO_REPLICAS = [LOCAL, replica(1, 'b:9000')];

function host(changes: Partial<HostFacts> = {}): HostFacts {
  return { url: 'http://a:8123', replicas: TWO_SHARDS, engine: 'ReplacingMergeTree', totalReplicas: 0, ...changes };
}

const other = (replicas = TWO_SHARDS) => host({ url: 'http://b:8123', replicas });
const replicated = (replicas: readonly Replica[], totalReplicas: number) =>
  host({ replicas, engine: 'ReplicatedReplacingMergeTree', totalReplicas });

it.each([
  ['of shards without replicas', [host(), other()], undefined],
  ['whose quorum is all replicas', [replicated(TWO_REPLICAS, 2)], 2],
  ['whose quorum is most replicas, of which it has one', [replicated([LOCAL], 3)], 2],
  ['with replicated tables of one replica', [replicated(TWO_SHARDS, 1)], 1],
])('a cluster %s is accepted', (_, hosts, insertQuorum) => {
  expect(clusterProblem(hosts, { name: 'prod', insertQuorum })).toBeUndefined();
});

it.each([
  ['that the host does not know', [host({ replicas: [] })], undefined, 'has no cluster prod'],
  ['that the host is no member of', [host({ replicas: [replica(1, 'b:9000')] })], undefined, 'is no member of'],
  [
    'that another host has with other members',
    [host(), other(TWO_REPLICAS)],
    undefined,
    'ClickHouse at b:8123 has other members of cluster prod than a:8123',
  ],
  [
    'of shards of different weight',
    [host({ replicas: [LOCAL, replica(2, 'b:9000', { weight: 2 })] })],
    undefined,
    'shards of different weight',
  ],
  [
    'whose rows are those of another number of shards',
    [host({ strayAccount: 'acme' })],
    undefined,
    'usage of account acme',
  ],
  ['with replicas of tables that are not', [host({ replicas: TWO_REPLICAS })], undefined, 'not replicated'],
  ['with a quorum for tables that are not replicated', [host()], 2, 'CLICKHOUSE_INSERT_QUORUM is set'],
  ['with replicated tables and no quorum', [replicated(TWO_REPLICAS, 2)], undefined, 'set CLICKHOUSE_INSERT_QUORUM'],
  ['whose quorum is above its replicas', [replicated(TWO_REPLICAS, 2)], 3, 'no insert would ever succeed'],
  [
    'whose quorum leaves out one of those that answer',
    [replicated([...TWO_REPLICAS, replica(1, 'c:9000')], 3)],
    2,
    'one of them may lack acknowledged rows',
  ],
  ['whose quorum is not most of its replicas', [replicated([LOCAL], 4)], 2, 'more than half'],
])('a cluster %s is rejected', (_, hosts, insertQuorum, message) => {
  expect(clusterProblem(hosts, { name: 'prod', insertQuorum })).toContain(message);
});

it('every statement is distributed on shards, and on replicas waits for the quorum too, for less time than the caller', () => {
  const shards = {
    distributed_foreground_insert: '1',
    optimize_skip_unused_shards: '1',
    parallel_distributed_insert_select: '0',
    distributed_product_mode: 'global',
  };
  const replicas = { insert_quorum: '2', insert_quorum_parallel: '1', insert_quorum_timeout: '15000' };
  expect(clusterSettings({ name: 'prod', insertQuorum: undefined }, 30_000)).toEqual(shards);
  expect(clusterSettings({ name: 'prod', insertQuorum: 2 }, 30_000)).toEqual({ ...shards, ...replicas });
});
