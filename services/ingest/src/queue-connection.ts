/**
 * The worker's connection to Redis, on which BullMQ's scripts do two things that they do not do by themselves:
 *
 * - They run while Redis is full. Taking and acknowledging jobs is what empties it (docs/decisions/0017).
 * - They hand over a job without what nobody bounds or checks: data that is large, which the worker then reads when it has
 *   room, and fields that BullMQ cannot parse, which would leave the job in work for ever.
 */
import { createRedisClient, type RedisClient } from '@meterline/access';
import { isNotConnectionError } from 'bullmq';
import { z } from 'zod';
import { batchScript, type RunScript, type ScriptArgument, ScriptBatch } from './script-batch.js';

/** Data of up to this many bytes comes with its job: some thousand events. */
export const INLINE_BYTES = 256 * 1024;

/** BullMQ's own: waits longer and longer, 20 s at most. */
const retryStrategy = (times: number) => Math.max(Math.min(Math.exp(times), 20_000), 1_000);

/** Redis refuses a script at its first write when it is full, unless the script says this in its first line. From Redis 7. */
const RUNS_WHEN_FULL = '#!lua flags=allow-oom\n';

/**
 * Stands before each of BullMQ's scripts, and takes the place of `redis.call` in it. HGETALL is how they read a job that is
 * taken: here it reads the fields that the worker needs. What else it has to say stands in `progress`, which no producer's
 * value reaches: see {@link readNote}.
 */
const JOB_READER = `
local redis = (function(redis)
  local unreadable = {}

  local function note(key, field)
    unreadable[key] = unreadable[key] or {}
    table.insert(unreadable[key], field)
  end

  local function decoded(text)
    local ok, value = pcall(cjson.decode, text)
    if ok and type(value) == 'table' then return value end
    return nil
  end

  -- Of the options only the trace that the job belongs to.
  local function options(key, text)
    if not text or text == '{}' then return '{}' end
    local opts = decoded(text)
    if not opts then
      note(key, 'opts')
      return '{}'
    end
    local trace = {}
    if type(opts.tm) == 'string' then trace.tm = opts.tm end
    if type(opts.omc) == 'boolean' then trace.omc = opts.omc end
    return next(trace) and cjson.encode(trace) or '{}'
  end

  -- The script that acknowledges the job reads the parent again and would fail.
  local function dropUnreadableParent(key, parentKey, parent)
    local fault = nil
    if parentKey and not string.match(parentKey, '^.+:[^:]+$') then fault = 'parentKey' end
    if parent then
      local value = decoded(parent)
      local id = value and value.id
      local isKnown = type(id) == 'string' and type(value.queueKey) == 'string' and parentKey
      if not isKnown then fault = 'parent' end
    end
    if fault then
      note(key, fault)
      redis.call('HDEL', key, 'parent', 'parentKey')
    end
  end

  local function job(key)
    local fields = {}
    local function add(name, value)
      if value then
        table.insert(fields, name)
        table.insert(fields, value)
      end
    end
    local values = redis.call('HMGET', key, 'name', 'timestamp', 'ats', 'atm', 'processedOn', 'opts', 'parentKey', 'parent', 'rjk')
    for n, name in ipairs({ 'name', 'timestamp', 'ats', 'atm', 'processedOn' }) do add(name, values[n]) end
    add('opts', options(key, values[6]))
    dropUnreadableParent(key, values[7], values[8])
    -- A schedule would send the same event for ever, which counts once.
    if values[9] then note(key, 'rjk') end
    local bytes = redis.call('HSTRLEN', key, 'data')
    if bytes <= ${INLINE_BYTES} then add('data', redis.call('HGET', key, 'data')) end
    add('progress', cjson.encode({ bytes = bytes, unreadable = unreadable[key] }))
    return fields
  end

  -- Counters of attempts, which a producer may have written over.
  local function increase(key, field, by)
    local answer = redis.pcall('HINCRBY', key, field, by)
    if type(answer) ~= 'table' or not answer.err then return answer end
    note(key, field)
    redis.call('HSET', key, field, by)
    return tonumber(by)
  end

  local call = function(command, ...)
    if command == 'HGETALL' then return job(...) end
    if command == 'HINCRBY' then return increase(...) end
    return redis.call(command, ...)
  end
  return setmetatable({ call = call }, { __index = redis })
end)(redis)
`;

/** BullMQ's script that acknowledges a job and takes the next one; its name goes on with BullMQ's version. */
const ACKNOWLEDGEMENT = 'moveToFinished:';

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

  constructor({ url, knowsScriptFlags, readsUsageJobs }: QueueConnectionOptions) {
    this.redis = createRedisClient(url, { maxRetriesPerRequest: null, retryStrategy });
    this.#flags = knowsScriptFlags ? RUNS_WHEN_FULL : '';
    this.#prepareScripts(this.#flags + (readsUsageJobs ? JOB_READER : ''));
  }

  /** BullMQ defines its scripts with `defineCommand`. */
  #prepareScripts(preamble: string): void {
    const define = this.redis.defineCommand.bind(this.redis);
    this.redis.defineCommand = (name, definition) => {
      define(name, { ...definition, lua: preamble + definition.lua });
      const { lua, numberOfKeys: keys } = definition;
      if (!name.startsWith(ACKNOWLEDGEMENT) || keys === undefined) return;
      const together = `${name}:together`;
      define(together, { lua: preamble + batchScript(lua) });
      const runBuffer = this.#script(`${together}Buffer`);
      const runMany = async (args: readonly ScriptArgument[]) => textsIn(await runBuffer(args));
      const batch = new ScriptBatch({ runOne: this.#script(name), runMany, keys });
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
