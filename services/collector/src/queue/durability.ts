/**
 * Checks that Redis is durable: that an event in the queue survives a failure of the machine. Redis must sync each command to disk before it
 * replies (Redis documentation, "Persistence", and flushAppendOnlyFile() in aof.c), and must load all data at its next start. Writes of
 * events only read the last result of the check, which is at most two seconds old.
 */
import { inTime, shared } from '@meterline/service';
import {
  leaveConnection,
  REDIS_PREFIX,
  type RedisClient,
  readRedisStatus,
  redisFailureKind,
} from '@meterline/service/access';
import { z } from 'zod';

/** The settings of Redis may change while it runs, so they are read again after this time. */
const MAX_AGE_MS = 2_000;

const IN_TRANSACTION = `${REDIS_PREFIX}:collector:marker`;
const PLAIN = `${IN_TRANSACTION}:plain`;
/** When Redis rewrites its append-only file, both markers are no longer part of transactions, so they are written again regularly. */
const MARK_AGAIN_AFTER_MS = 60_000;

const LEFT_OUT = `has left out jobs and API keys while it loaded its data: give its user default all rights, as redis/users.conf does, and start it again; if they cannot be had back, delete the key ${PLAIN}`;
const EMPTY =
  'has lost its data since this collector started: restore it, or start the collector again if it is meant to be empty';
const REPLICA = 'is a replica, which takes no events: let the address lead to the master';
const NOT_ALLOWED =
  'does not let its user write the keys that show whether it has loaded everything: give it the rights of collector in redis/users.conf';

const written = z.coerce.number().nullable();
const raised = z.tuple([z.unknown(), z.tuple([z.null(), z.number()])]);

interface DurabilityOptions {
  /** The connection that events are written on. */
  readonly redis: RedisClient;
  /** Whether to skip the check of the settings, because the operator knows that Redis is durable. */
  readonly isAssumed: boolean;
  /** Timeout of the check. */
  readonly responseMs: number;
}

export class Durability {
  readonly #options: DurabilityOptions;
  #last: { readonly problem: string | undefined; readonly atMs: number } | undefined;
  #markedAtMs: number | undefined;

  constructor(options: DurabilityOptions) {
    this.#options = options;
    // After a reconnect, the same address may lead to another server.
    options.redis.on('close', () => {
      this.#last = undefined;
    });
  }

  /**
   * Returns the problem of the server, its settings or its data, as text to follow "Redis", or undefined if Redis is durable.
   * @throws if Redis does not respond
   */
  async problem(): Promise<string | undefined> {
    if (this.#last && performance.now() - this.#last.atMs < MAX_AGE_MS) return this.#last.problem;
    return this.#refresh();
  }

  /** Shared by concurrent requests. */
  readonly #refresh = shared(async () => {
    const { responseMs, redis } = this.#options;
    try {
      const problem = await inTime('Redis', this.#read(redis), responseMs);
      this.#last = { problem, atMs: performance.now() };
      return problem;
    } catch (error) {
      // Commands that wait on a silent connection would never complete.
      if (redisFailureKind(error) !== 'rejected') leaveConnection(redis);
      throw error;
    }
  });

  async #read(redis: RedisClient): Promise<string | undefined> {
    const { problem } = await readRedisStatus(redis);
    if (problem !== undefined || this.#options.isAssumed) return problem;
    return (await this.#markedProblem(redis)) ?? problemOf(await readSettings(redis));
  }

  /**
   * Checks that Redis has all data that was written to it. If the Redis user `default` lacks a right, Redis skips transactions while it loads
   * its append-only file (redis/redis#14541), and then works as usual. All scripts of BullMQ and of API keys are transactions in that file.
   *
   * To detect this, a transaction increments one marker. Then a plain command, which is never skipped, writes the same number to a second
   * marker. A power failure or a failover can only lose the end of the written data, so the second marker is never ahead of the first. If the
   * second marker is ahead, transactions were skipped.
   */
  async #markedProblem(redis: RedisClient): Promise<string | undefined> {
    try {
      // Read in this order, because another collector may write between the two commands.
      const plain = written.parse(await redis.get(PLAIN));
      const inTransaction = written.parse(await redis.get(IN_TRANSACTION));
      if ((plain ?? 0) > (inTransaction ?? 0)) return LEFT_OUT;
      if (inTransaction === null && this.#markedAtMs !== undefined) return EMPTY;
      if (this.#markedAtMs === undefined || performance.now() - this.#markedAtMs > MARK_AGAIN_AFTER_MS) {
        // Two commands, because Redis writes a transaction with one command to the file as a plain command.
        const results = await redis.multi().incr(IN_TRANSACTION).incr(IN_TRANSACTION).exec();
        const [, [, number]] = raised.parse(results);
        await redis.set(PLAIN, number);
        this.#markedAtMs = performance.now();
      }
      return undefined;
    } catch (error) {
      const messages = repliesIn(error);
      if (messages.some((message) => message.startsWith('NOPERM'))) return NOT_ALLOWED;
      if (messages.some((message) => message.startsWith('READONLY'))) return REPLICA;
      // Redis currently rejects all writes, so the write of the events reports the same error.
      if (messages.some((message) => /^(EXECABORT|OOM|MISCONF|NOREPLICAS)/.test(message))) return undefined;
      throw error;
    }
  }
}

const DURABLE = { appendonly: 'yes', appendfsync: 'always', 'no-appendfsync-on-rewrite': 'no' } as const;
type Settings = Readonly<Partial<Record<string, string>>>;

const reply = z.array(z.string());

/** Returns undefined if Redis does not allow reading its settings. @throws if Redis does not respond */
async function readSettings(redis: RedisClient): Promise<Settings | undefined> {
  try {
    const pairs = reply.parse(await redis.config('GET', '*append*'));
    return Object.fromEntries(pairs.flatMap((name, at) => (at % 2 === 0 ? [[name, pairs[at + 1]]] : [])));
  } catch (error) {
    // The user lacks the right, or the command does not exist: managed servers rename it.
    if (error instanceof Error && /^(NOPERM|ERR unknown command)/.test(error.message)) return undefined;
    throw error;
  }
}

function problemOf(settings: Settings | undefined): string | undefined {
  if (settings === undefined) {
    return 'does not tell whether it is durable: let its user run CONFIG GET, or add ?durability=assumed to REDIS_URL if you know that it has appendonly yes and appendfsync always';
  }
  const wrong = Object.entries(DURABLE).filter(([name, value]) => settings[name] !== value);
  if (wrong.length === 0) return undefined;
  const current = wrong.map(([name]) => `${name} ${settings[name] ?? 'unknown'}`);
  const needed = wrong.map(([name, value]) => `${name} ${value}`);
  return `may lose events that it has taken, with ${current.join(', ')}: set ${needed.join(', ')}`;
}

/** Returns the error replies of Redis, including the replies to commands of a transaction. */
function repliesIn(error: unknown): string[] {
  if (!(error instanceof Error) || redisFailureKind(error) !== 'rejected') return [];
  const previous = 'previousErrors' in error && Array.isArray(error.previousErrors) ? error.previousErrors : [];
  return [...previous.flatMap(repliesIn), error.message];
}
