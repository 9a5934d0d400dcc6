/**
 * The worker's connection to Redis, on which BullMQ's scripts do two things that they do not do by themselves:
 *
 * - They run while Redis is full. Taking and acknowledging jobs is what empties it (docs/decisions/0017).
 * - They hand over a job without what nobody bounds or checks: data that is large, which the worker then reads when it has
 *   room, and fields that BullMQ cannot parse, which would leave the job in work for ever.
 */
import { createHash } from 'node:crypto';
import { createRedisClient, type RedisClient } from '@meterline/access';
import { isNotConnectionError } from 'bullmq';
import { z } from 'zod';
import { JOB_READER } from './job-reader.js';

/** BullMQ's own: waits longer and longer, 20 s at most. */
const retryStrategy = (times: number) => Math.max(Math.min(Math.exp(times), 20_000), 1_000);

/** Redis refuses a script at its first write when it is full, unless the script says this in its first line. From Redis 7. */
const RUNS_WHEN_FULL = '#!lua flags=allow-oom\n';

/** BullMQ's scripts whose work our own share with them (plain-jobs.ts), as they were tried together: the SHA-1 of their text. */
const KNOWN_SCRIPTS: Readonly<Record<string, string>> = {
  // BullMQ 6.7.0
  moveToActive: 'd96ca626f1ea141b44a856b312fc636d99aa9ea9',
  moveToFinished: '69666e69dd5621df59067a03de685e55a486560d',
  moveStalledJobsToWait: '1e9bb7deb6219644a634d32c430ce15ed39a377e',
  extendLocks: 'c35baf769e5dc3d9194b2bceca04ab59f7c510f7',
};

/** Large, because Redis copies all data for each piece of it: 0.1 s for 25 MB. */
const PIECE_BYTES = 32 * 1024 * 1024;

/** A piece of a job's data, which may be larger than a worker could hold. */
const READ_PIECE = `
local data = redis.call('HGET', KEYS[1], 'data')
return string.sub(data or '', ARGV[1], ARGV[2])`;

const noteSchema = z.object({ bytes: z.number(), unreadable: z.array(z.string()).default([]) });

/** What the connection says of a job beside its fields. */
export interface JobNote {
  /** Of the job's data; more than `INLINE_BYTES`: the data is not with the job. */
  readonly bytes: number;
  /** The fields that were left out because BullMQ could not have read them. */
  readonly unreadable: readonly string[];
}

/** @param progress of a job that this connection has taken */
export function readNote(progress: unknown): JobNote {
  return noteSchema.parse(progress);
}

export interface QueueConnectionOptions {
  readonly url: string;
  /** Whether this Redis knows flags of scripts: from version 7 on. */
  readonly knowsScriptFlags: boolean;
  /** Whether the jobs on this connection are read as described above. */
  readonly readsUsageJobs: boolean;
}

export type RunScript = (keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown>;

export class QueueConnection {
  /** For BullMQ. */
  readonly redis: RedisClient;
  readonly #flags: string;
  readonly #known = new Set<string>();
  readonly #define: (name: string, lua: string) => void;

  constructor({ url, knowsScriptFlags, readsUsageJobs }: QueueConnectionOptions) {
    // BullMQ takes a job for failed that was done and could not be acknowledged.
    this.redis = createRedisClient(url, { maxRetriesPerRequest: null, retryStrategy, waitsForNodes: readsUsageJobs });
    this.#flags = knowsScriptFlags ? RUNS_WHEN_FULL : '';
    this.#define = this.#prepareScripts(this.#flags + (readsUsageJobs ? JOB_READER : ''));
  }

  /** Whether BullMQ's scripts are those that ours were tried with. True or false when they are defined. */
  get knowsScripts(): boolean {
    return this.#known.size === Object.keys(KNOWN_SCRIPTS).length;
  }

  /** BullMQ defines its scripts with `defineCommand`. */
  #prepareScripts(preamble: string): (name: string, lua: string) => void {
    const define = this.redis.defineCommand.bind(this.redis);
    this.redis.defineCommand = (name, definition) => {
      define(name, { ...definition, lua: preamble + definition.lua });
      const [script = ''] = name.split(':');
      const hash = createHash('sha1').update(definition.lua).digest('hex');
      if (KNOWN_SCRIPTS[script] === hash) this.#known.add(script);
    };
    return (name, lua) => define(name, { lua: this.#flags + lua });
  }

  /**
   * A script of ours, which runs while Redis is full, too.
   * @returns runs it, and gives texts as bytes
   */
  script(name: string, lua: string): RunScript {
    this.#define(name, lua);
    const run: unknown = Reflect.get(this.redis, `${name}Buffer`);
    if (typeof run !== 'function') throw new Error(`the script ${name} is not defined`);
    return (keys, args) => run.call(this.redis, keys.length, ...keys, ...args);
  }

  /**
   * The data of a job that is too large to be read, in pieces that fit in memory.
   * @param bytes its length
   * @throws when the job is gone
   */
  async *dataPieces(jobKey: string, bytes: number): AsyncGenerator<Buffer> {
    for (let from = 1; from <= bytes; from += PIECE_BYTES) {
      const to = Math.min(from + PIECE_BYTES - 1, bytes);
      const piece = await this.redis.callBuffer('EVAL', this.#flags + READ_PIECE, 1, jobKey, from, to);
      if (!(piece instanceof Buffer) || piece.length !== to - from + 1)
        throw new Error(`the data of ${jobKey} is gone`);
      yield piece;
    }
  }
}

/** @param info the section `server` of INFO; Valkey says there which Redis it is compatible with */
export function knowsScriptFlags(info: string): boolean {
  const [, major] = /^redis_version:(\d+)\./m.exec(info) ?? [];
  return Number(major) >= 7;
}

/** What ioredis and Redis say when the node of a Redis Cluster that has the queue is away. */
const NODE_AWAY = /^(Too many Cluster redirections|Failed to refresh slots cache|CLUSTERDOWN|Connection is closed)/;

/** System errors, such as ECONNRESET, have a `syscall`. */
export function isConnectionError(error: Error): boolean {
  return !isNotConnectionError(error) || 'syscall' in error || NODE_AWAY.test(error.message);
}
