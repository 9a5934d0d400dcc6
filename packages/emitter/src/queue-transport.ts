/**
 * Sends events as jobs of the BullMQ queue. BullMQ by itself waits without end for a Redis that is away; here every attempt ends
 * after some seconds.
 */
import { once } from 'node:events';
import { QUEUE_NAME, QUEUE_PREFIX } from '@meterline/catalog/events';
import type { Queue } from 'bullmq';
import type { Cluster, Redis } from 'ioredis';
import { EmitterError } from './errors.js';
import type { Refusal, Transport } from './transport.js';

const CONNECT_WITHIN_MS = 5_000;
/** Redis may wait for its disk. */
const ANSWER_WITHIN_MS = 10_000;
const DISCONNECT_WITHIN_MS = 100;
const LONGEST_RECONNECT_MS = 2_000;

const BEHAVIOUR = {
  lazyConnect: true,
  // A command fails at once when there is no connection, and is not sent again behind our back.
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  connectTimeout: CONNECT_WITHIN_MS,
  // A connection whose other end is silent does not hold up the end of the process.
  disconnectTimeout: DISCONNECT_WITHIN_MS,
  retryStrategy: (times: number) => Math.min(50 * 2 ** times, LONGEST_RECONNECT_MS),
};
export type Behaviour = typeof BEHAVIOUR;

/**
 * The address of one server that ioredis reads as redis-address.ts does: without options, and with nothing that is encoded. A host or
 * port that is none is left to that.
 */
const PLAIN = /^redis(s?:\/\/([^/?#,%@:]*:[^/?#,%@]+@)?[^/?#,%@]+)(\/\d{0,5})?$/;

type QueueClass = typeof Queue;
type Client = Redis | Cluster;
type Drivers = Pick<typeof import('ioredis'), 'Cluster' | 'Redis'>;

/** The queues that are filled in turn. */
export interface Topology {
  readonly places: readonly Place[];
  readonly turns: {
    next(nowMs: number): number;
    took(shard: number): void;
    failed(shard: number, nowMs: number): void;
  };
}

export interface Place {
  readonly prefix: string;
  connect(drivers: Drivers): Client;
  /** @param key of the queue @returns writes a job there, and resolves when all have it that must */
  writerOf(redis: Client, key: string): Promise<(add: () => Promise<unknown>) => Promise<unknown>>;
}

export interface QueueOptions {
  readonly prefix?: string | undefined;
  /** How many queues are filled in turn. */
  readonly shards: number;
}

/** @throws EmitterError `invalid_option`, `missing_package`; not because Redis is away */
export async function openQueueTransport(
  url: string,
  { prefix = QUEUE_PREFIX, shards }: QueueOptions,
): Promise<Transport> {
  const topology =
    shards === 1 && isPlain(url)
      ? plainTopology(url, prefix)
      : (await import('./queue-topology.js')).topologyOf(url, prefix, shards, BEHAVIOUR);
  if (typeof topology === 'string') throw new EmitterError('invalid_option', `url ${topology}`);
  const [bullmq, ioredis] = await Promise.all([import('bullmq'), import('ioredis')]).catch((error) => {
    const message = 'sending to Redis needs two packages: npm install bullmq ioredis';
    throw new EmitterError('missing_package', message, { cause: error });
  });
  const queues = topology.places.map((place) => new ShardConnection(bullmq.Queue, place.connect(ioredis), place));
  return new QueueTransport(queues, topology.turns);
}

/** A scheme that browsers know, because others leave the host as it is. */
export function isPlain(url: string): boolean {
  const [, rest] = PLAIN.exec(url) ?? [];
  return rest !== undefined && URL.canParse(`http${rest}`);
}

function plainTopology(url: string, prefix: string): Topology {
  return {
    turns: { next: () => 0, took: () => undefined, failed: () => undefined },
    places: [{ prefix, connect: ({ Redis }) => new Redis(url, BEHAVIOUR), writerOf: async () => (add) => add() }],
  };
}

class QueueTransport implements Transport {
  readonly #queues: readonly ShardConnection[];
  readonly #turns: Topology['turns'];

  constructor(queues: readonly ShardConnection[], turns: Topology['turns']) {
    this.#queues = queues;
    this.#turns = turns;
  }

  /** All are alike: the worker refuses what is to be refused, later. */
  laneOf(): string {
    return '';
  }

  /** To the queue whose turn it is, or if that fails to the next one: in two of them the same events are harmless. */
  async send(events: readonly string[]): Promise<readonly Refusal[]> {
    for (let attempt = 1; ; attempt += 1) {
      const turn = this.#turns.next(performance.now());
      try {
        await this.#queues[turn]?.send(events);
        this.#turns.took(turn);
        return [];
      } catch (error) {
        this.#turns.failed(turn, performance.now());
        if (attempt >= this.#queues.length) throw error;
      }
    }
  }

  close(): void {
    for (const queue of this.#queues) queue.close();
  }
}

/** One queue and its connection. */
class ShardConnection {
  readonly #Queue: QueueClass;
  readonly #redis: Client;
  readonly #place: Place;
  #queue: Promise<OpenQueue> | undefined;
  #connecting: Promise<unknown> | undefined;
  #isClosed = false;

  constructor(QueueOfPeer: QueueClass, redis: Client, place: Place) {
    this.#Queue = QueueOfPeer;
    this.#redis = redis;
    this.#place = place;
    // The same errors reject what is being sent.
    redis.on('error', () => undefined);
  }

  async send(events: readonly string[]): Promise<void> {
    await this.#connected();
    try {
      await within(ANSWER_WITHIN_MS, this.#add(events));
    } catch (error) {
      // A connection whose other end is gone says nothing for ever. One that is being made has a time limit of its own.
      if (error instanceof NoAnswer && this.#redis.status === 'ready') this.#redis.disconnect(true);
      throw error;
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#redis.disconnect();
  }

  async #add(events: readonly string[]): Promise<void> {
    const { queue, write } = await this.#open();
    await write(() => queue.add('usage', JSON.parse(`{"events":[${events.join()}]}`)));
  }

  /** Rejects with the reason, or when it takes too long. */
  async #connected(): Promise<void> {
    if (this.#redis.status === 'ready') return;
    // A new connection would keep the process alive.
    if (this.#isClosed) throw new NoAnswer('closed');
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined;
    });
    await this.#connecting;
  }

  async #connect(): Promise<void> {
    const ready = within(CONNECT_WITHIN_MS, once(this.#redis, 'ready'));
    // It reports its outcome as an event as well. With Sentinels, ioredis may have given up.
    if (/^(wait|end)$/.test(this.#redis.status)) this.#redis.connect().catch(() => undefined);
    await ready;
  }

  /** BullMQ's queue asks Redis for its version first, and is of no use when that has failed. */
  #open(): Promise<OpenQueue> {
    this.#queue ??= this.#opened().catch((error) => {
      this.#queue = undefined;
      throw error;
    });
    return this.#queue;
  }

  async #opened(): Promise<OpenQueue> {
    const queue = new this.#Queue(QUEUE_NAME, { connection: this.#redis, prefix: this.#place.prefix });
    queue.on('error', () => undefined);
    await queue.waitUntilReady();
    return { queue, write: await this.#place.writerOf(this.#redis, queue.toKey('wait')) };
  }
}

interface OpenQueue {
  readonly queue: Queue;
  readonly write: Awaited<ReturnType<Place['writerOf']>>;
}

class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    // The connection keeps the process alive while there is one.
    timer = setTimeout(() => reject(new NoAnswer(`no answer within ${ms / 1000} s`)), ms).unref();
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
