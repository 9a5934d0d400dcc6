/**
 * The producer's side of the queue. A write ends after some seconds, whatever Redis does: BullMQ by itself waits without end.
 * What is not known to be durable is reported as not accepted; sending the same events again is harmless.
 */
import { createRedisClient, leaveConnection, type RedisClient } from '@meterline/access';
import { NotReplicated, QUEUE_NAME, replicated, serverFinder } from '@meterline/catalog';
import { inTime } from '@meterline/service';
import type { Telemetry } from 'bullmq';
import type { Redis } from 'ioredis';
import type { JobEvents } from '../events/check.js';
import { JsonBytes, JsonQueue } from './json-queue.js';

const CONNECT_WITHIN_MS = 2_000;
const LONGEST_RECONNECT_MS = 1_000;
const JOB_NAME = 'usage';
const BEFORE_EVENTS = Buffer.from('{"events":[');
const AFTER_EVENTS = Buffer.from(']}');
/** Of the time for a write: replicas that are late are an answer, and no reason to connect again. */
const WAIT_SHARE = 0.75;

/**
 * A command fails at once while there is no connection, and is not sent again behind our back, unless a node of a Redis Cluster
 * goes away with it: the same events in two jobs are harmless.
 */
export function createQueueConnection(url: string): RedisClient {
  return createRedisClient(url, {
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_WITHIN_MS,
    // A connection whose other end is silent does not hold up the end of the process.
    disconnectTimeout: 100,
    retryStrategy: (attempt) => Math.min(attempt * 50, LONGEST_RECONNECT_MS),
  });
}

export interface EventQueueOptions {
  /** Connected. The queue does not close it. */
  readonly redis: RedisClient;
  readonly prefix: string;
  /** How many replicas must have the events before they count as taken. */
  readonly replicas: number;
  readonly writeMs: number;
  readonly telemetry: Telemetry | undefined;
}

export class EventQueue {
  readonly #redis: RedisClient;
  readonly #queue: JsonQueue;
  readonly #replicas: number;
  readonly #writeMs: number;
  #server: (() => Redis) | undefined;

  constructor({ redis, prefix, replicas, telemetry, writeMs }: EventQueueOptions) {
    this.#redis = redis;
    this.#replicas = replicas;
    this.#writeMs = writeMs;
    this.#queue = new JsonQueue(QUEUE_NAME, { connection: redis, prefix, ...(telemetry && { telemetry }) });
    // The same errors reject what is being written, and the connection's outage is logged where it is watched.
    this.#queue.on('error', () => undefined);
  }

  async open(): Promise<void> {
    await this.#queue.waitUntilReady();
    this.#server = await serverFinder(this.#redis, this.#queue.toKey('wait'));
  }

  /** The server that has the queue now. @throws while there is none */
  get server(): Redis {
    if (!this.#server) throw new Error('the queue is not open');
    return this.#server();
  }

  /**
   * Adds a job with these events. It is in the queue when this resolves; whether that is durable depends on the configuration of
   * Redis, see durability.ts.
   * @throws when Redis refuses, is away, or does not answer in time; the job may be in the queue all the same
   */
  async add(events: JobEvents): Promise<void> {
    try {
      await inTime('Redis', this.#added(events), this.#writeMs);
    } catch (error) {
      // What was not sent yet would stay in memory for as long as the other end is silent.
      if (!isAnswer(error) && !(error instanceof NotReplicated)) leaveConnection(this.#redis);
      throw error;
    }
  }

  async #added(events: JobEvents): Promise<void> {
    const withinMs = Math.ceil(this.#writeMs * WAIT_SHARE);
    const data = new JsonBytes(Buffer.concat([BEFORE_EVENTS, ...events.parts, AFTER_EVENTS]));
    const add = () => this.#queue.add(JOB_NAME, data);
    await replicated(add, () => this.server, { replicas: this.#replicas, withinMs });
  }
}

/** Whether Redis itself has answered so; otherwise it is away or silent. */
export function isAnswer(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError';
}
