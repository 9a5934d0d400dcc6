/**
 * What an emitter needs for more than one server with one queue: addresses of Sentinels, Clusters and with options, several queues, and
 * replicas that must have the events. It is loaded only then, because it is as large as all else that sends to Redis. What is wrong
 * with an address is found here, too.
 */
import {
  parseRedisUrl,
  queuePrefixOf,
  redisClientOptions,
  redisUrlFault,
  replicated,
  ShardTurns,
  serverFinder,
} from '@meterline/catalog/events';
import type { Behaviour, Topology } from './queue-transport.js';

/** Shorter than Redis' time for an answer: replicas that are late are an answer. */
const REPLICATED_WITHIN_MS = 7_000;
/** Of all queues that are tried for a batch: after so long no other one is. */
const TRIED_WITHIN_MS = 10_000;

/** @returns what is wrong with the address, if it is none */
export function topologyOf(url: string, prefix: string, shards: number, behaviour: Behaviour): Topology | string {
  const fault = redisUrlFault(url);
  if (fault !== undefined) return fault;
  const address = parseRedisUrl(url);
  const { replicas } = address;
  const { nodes, options } = redisClientOptions(address, behaviour);
  const turns = new ShardTurns(shards);
  return {
    inTurn: (write) => turns.write(write, TRIED_WITHIN_MS, () => performance.now()),
    // One connection each: a queue whose server hangs holds up no other.
    places: Array.from({ length: shards }, (_, shard) => ({
      prefix: queuePrefixOf(prefix, shard, nodes !== undefined),
      connect: ({ Cluster, Redis }) => (nodes ? new Cluster(nodes, options) : new Redis(options)),
      writerOf: async (redis, key) => {
        const server = await serverFinder(redis, key);
        return (add) => replicated(add, server, { replicas, withinMs: REPLICATED_WITHIN_MS });
      },
    })),
  };
}
