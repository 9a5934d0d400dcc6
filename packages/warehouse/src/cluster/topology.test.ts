import { describe, expect, it } from '@jest/globals';
import { clusterSettings } from '../clickhouse/hosts.js';
import { clusterFault, type HostFacts, type Replica } from './topology.js';

const replica = (shard: number, address: string, changes: Partial<Replica> = {}): Replica => ({
  shard,
  address,
  weight: 1,
  isLocal: false,
  ...changes,
});
const TWO_SHARDS = [replica(1, 'a:9000', { isLocal: true }), replica(2, 'b:9000')];
const TWO_REPLICAS = [replica(1, 'a:9000', { isLocal: true }), replica(1, 'b:9000')];

function host(changes: Partial<HostFacts> = {}): HostFacts {
  return { url: 'http://a:8123', replicas: TWO_SHARDS, engine: 'ReplacingMergeTree', totalReplicas: 0, ...changes };
}

const replicated = (replicas: readonly Replica[], totalReplicas: number) =>
  host({ replicas, engine: 'ReplicatedReplacingMergeTree', totalReplicas });

const SHARDS = { name: 'prod', insertQuorum: undefined };
const quorum = (insertQuorum: number) => ({ name: 'prod', insertQuorum });

describe('a cluster is accepted', () => {
  it.each([
    ['of shards without replicas', [host(), host({ url: 'http://b:8123' })], SHARDS],
    ['whose quorum is all replicas', [replicated(TWO_REPLICAS, 2)], quorum(2)],
    [
      'whose quorum is most replicas, of which it has one',
      [replicated([replica(1, 'a:9000', { isLocal: true })], 3)],
      quorum(2),
    ],
    ['with replicated tables of one replica', [replicated(TWO_SHARDS, 1)], quorum(1)],
  ])('%s', (_, hosts, cluster) => {
    expect(clusterFault(hosts, cluster)).toBeUndefined();
  });
});

describe('a cluster is refused', () => {
  it.each([
    ['that the host does not know', [host({ replicas: [] })], SHARDS, 'http'],
    ['that the host is no member of', [host({ replicas: [replica(1, 'b:9000')] })], SHARDS, 'is no member of'],
    [
      'that another host has with other members',
      [host(), host({ url: 'http://b:8123', replicas: TWO_REPLICAS })],
      SHARDS,
      'ClickHouse at b:8123 has other members of cluster prod than a:8123',
    ],
    [
      'of shards of different weight',
      [host({ replicas: [replica(1, 'a:9000', { isLocal: true }), replica(2, 'b:9000', { weight: 2 })] })],
      SHARDS,
      'shards of different weight',
    ],
    [
      'whose rows are those of another number of shards',
      [host({ strayAccount: 'acme' })],
      SHARDS,
      'usage of account acme',
    ],
    ['with replicas of tables that are not', [host({ replicas: TWO_REPLICAS })], SHARDS, 'not replicated'],
    ['with a quorum for tables that are not replicated', [host()], quorum(2), 'CLICKHOUSE_INSERT_QUORUM is set'],
    ['with replicated tables and no quorum', [replicated(TWO_REPLICAS, 2)], SHARDS, 'set CLICKHOUSE_INSERT_QUORUM'],
    ['whose quorum is above its replicas', [replicated(TWO_REPLICAS, 2)], quorum(3), 'no insert would ever succeed'],
    [
      'whose quorum leaves out one of those that answer',
      [replicated([...TWO_REPLICAS, replica(1, 'c:9000')], 3)],
      quorum(2),
      'one of them may lack acknowledged rows',
    ],
    [
      'whose quorum is not most of its replicas',
      [replicated([replica(1, 'a:9000', { isLocal: true })], 4)],
      quorum(2),
      'more than half',
    ],
  ])('%s', (_, hosts, cluster, message) => {
    expect(clusterFault(hosts, cluster)).toContain(message === 'http' ? 'has no cluster prod' : message);
  });
});

describe('the settings of every statement', () => {
  const shards = {
    distributed_foreground_insert: '1',
    optimize_skip_unused_shards: '1',
    parallel_distributed_insert_select: '0',
    distributed_product_mode: 'global',
  };

  it('on shards', () => {
    expect(clusterSettings(SHARDS, 30_000)).toEqual(shards);
  });

  it('on replicas wait for the quorum, for less time than the caller', () => {
    expect(clusterSettings(quorum(2), 30_000)).toEqual({
      ...shards,
      insert_quorum: '2',
      insert_quorum_parallel: '1',
      insert_quorum_timeout: '15000',
    });
  });
});
