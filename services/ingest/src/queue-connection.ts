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
import { INLINE_BYTES, JOB_READER, KNOWN_ANSWERS } from './job-reader.js';
import { batchScript, type RunScript, type ScriptArgument, ScriptBatch } from './script-batch.js';

/** BullMQ's own: waits longer and longer, 20 s at most. */
const retryStrategy = (times: number) => Math.max(Math.min(Math.exp(times), 20_000), 1_000);

/** Redis refuses a script at its first write when it is full, unless the script says this in its first line. From Redis 7. */
const RUNS_WHEN_FULL = '#!lua flags=allow-oom\n';

/**
 * BullMQ's scripts of which many calls go together: the one that takes a job, and the one that acknowledges a job and may take
 * the next one. Their names go on with BullMQ's version. When one call takes nothing, further ones would not either; and an answer must
 * stay small enough to be held, so it ends with the job that makes it large, and the others stay in the queue.
 */
const TOGETHER: Readonly<Record<string, string>> = {
  moveToActive: `type(result) ~= 'table' or type(result[1]) ~= 'table' or redis.bytesRead() > ${INLINE_BYTES * 4}`,
  moveToFinished: 'false',
};

/** These scripts as our own loop has been tried with them (docs/decisions/0041): the SHA-1 of their text. */
const KNOWN_SCRIPTS: ReadonlySet<string> = new Set([
  // BullMQ 6.7.0
  'd96ca626f1ea141b44a856b312fc636d99aa9ea9',
  '69666e69dd5621df59067a03de685e55a486560d',
]);

/** The field of a job. */
const DATA = Buffer.from('data');

/** Large, because Redis copies all data for each piece of it: 0.1 s for 25 MB. */
const PIECE_BYTES = 32 * 1024 * 1024;

/** A piece of a job's data, which may be larger than a worker could hold. */
const READ_PIECE = `
local data = redis.call('HGET', KEYS[1], 'data')
return string.sub(data or '', ARGV[1], ARGV[2])`;

const noteSchema = z.object({ bytes: z.number(), unreadable: z.array(z.string()).default([]) });

/** What the connection says of a job beside its fields. */
export interface JobNote {
  /** Of the job's data; more than {@link INLINE_BYTES}: the data is not with the job. */
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

export class QueueConnection {
  /** For BullMQ. */
  readonly redis: RedisClient;
  readonly #flags: string;
  readonly #known = new Set<string>();

  constructor({ url, knowsScriptFlags, readsUsageJobs }: QueueConnectionOptions) {
    this.redis = createRedisClient(url, { maxRetriesPerRequest: null, retryStrategy });
    this.#flags = knowsScriptFlags ? RUNS_WHEN_FULL : '';
    this.#prepareScripts(this.#flags + (readsUsageJobs ? JOB_READER : ''), readsUsageJobs);
  }

  /** Whether BullMQ's scripts are those that many jobs may be taken with. True or false when they are defined. */
  get knowsScripts(): boolean {
    return this.#known.size === Object.keys(TOGETHER).length;
  }

  /** BullMQ defines its scripts with `defineCommand`. */
  #prepareScripts(preamble: string, readsUsageJobs: boolean): void {
    const define = this.redis.defineCommand.bind(this.redis);
    this.redis.defineCommand = (name, definition) => {
      define(name, { ...definition, lua: preamble + definition.lua });
      const { lua, numberOfKeys: keys } = definition;
      const [script = ''] = name.split(':');
      const isLast = TOGETHER[script];
      if (!readsUsageJobs || isLast === undefined || keys === undefined) return;
      const isKnown = KNOWN_SCRIPTS.has(createHash('sha1').update(lua).digest('hex'));
      if (isKnown) this.#known.add(script);
      const together = `${name}:together`;
      define(together, { lua: preamble + (isKnown ? KNOWN_ANSWERS : '') + batchScript(lua, isLast) });
      const runBuffer = this.#script(`${together}Buffer`);
      const runMany = async (args: readonly ScriptArgument[]) => textsIn(await runBuffer(args));
      const batch = new ScriptBatch({ runOne: this.#script(name), runMany, keys, endsEarly: isLast !== 'false' });
      // What BullMQ calls from now on.
      Object.assign(this.redis, { [name]: (args: ScriptArgument[]) => batch.run(args) });
    };
  }

  /** A script that was defined, as ioredis made it: it takes its arguments as an array, too. */
  #script(name: string): RunScript {
    const run: unknown = Reflect.get(this.redis, name);
    if (typeof run !== 'function') throw new Error(`the script ${name} is not defined`);
    return (args) => run.call(this.redis, [...args]);
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

/**
 * A reply of bytes with texts instead, but for the data of jobs: hundreds of those come together, and the garbage collector would
 * copy them while they wait for their turn. A job's fields are a list of names and values.
 */
function textsIn(reply: unknown): unknown {
  if (reply instanceof Buffer) return reply.toString();
  if (!Array.isArray(reply)) return reply;
  return reply.map((item: unknown, at) => {
    const name: unknown = at % 2 === 1 ? reply[at - 1] : undefined;
    return name instanceof Buffer && DATA.equals(name) ? item : textsIn(item);
  });
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
