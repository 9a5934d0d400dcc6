/**
 * Checks that confirmed writes survive a failure of the Redis machine. Redis must sync each command to disk before it replies (Redis
 * documentation, "Persistence", and flushAppendOnlyFile() in aof.c), and it must load all commands at its next start.
 * A write of events does not wait for the check. It reads the last result, which is at most two seconds old.
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

/** Time for which the result of a check is valid. The time is short, because the configuration may change while Redis runs. */
const VALID_FOR_MS = 2_000;

const IN_TRANSACTION = `${REDIS_PREFIX}:collector:marker`;
const PLAIN = `${IN_TRANSACTION}:plain`;
/**
 * Interval at which the two marker keys are written again, one of them in a transaction. `#markedProblem` compares them to detect that Redis
 * has lost transactions while it loaded its data. After Redis has rewritten its append-only file, both are stored without a transaction.
 */
const MARK_AGAIN_AFTER_MS = 60_000;

const LEFT_OUT = `has left out jobs and API keys while it loaded its data: give its user default all rights, as redis/users.conf does, and start it again; if the data cannot be recovered, delete the key ${PLAIN}`;
const EMPTY =
  'has lost its data since this collector started: restore it, or start the collector again if it is meant to be empty';
const REPLICA = 'is a replica, which accepts no events: use the address of the master';
const NOT_ALLOWED =
  'does not let its user write the keys that show whether it has loaded all data: give it the rights of collector in redis/users.conf';

const written = z.coerce.number().nullable();
const raised = z.tuple([z.unknown(), z.tuple([z.null(), z.number()])]);

interface DurabilityOptions {
  readonly redis: RedisClient;
  /** Whether the operator guarantees that Redis is durable. If so, the configuration of Redis is not checked. */
  readonly isAssumed: boolean;
  readonly timeoutMs: number;
}

export class Durability {
  readonly #options: DurabilityOptions;
  #known: { readonly problem: string | undefined; readonly atMs: number } | undefined;
  #markedAtMs: number | undefined;

  constructor(options: DurabilityOptions) {
    this.#options = options;
    // After a reconnect, the same address may belong to another server, so the last result no longer applies.
    options.redis.on('close', () => {
      this.#known = undefined;
    });
  }

  /** Returns what is wrong, as the end of a sentence that starts with "Redis", or undefined. @throws if Redis does not reply */
  async problem(): Promise<string | undefined> {
    if (this.#known && performance.now() - this.#known.atMs < VALID_FOR_MS) return this.#known.problem;
    return this.#refresh();
  }

  readonly #refresh = shared(async () => {
    const problem = await this.#check();
    this.#known = { problem, atMs: performance.now() };
    return problem;
  });

  /** Drops the connection if Redis does not reply, as `UsageQueue.add` does. */
  async #check(): Promise<string | undefined> {
    const { timeoutMs, redis } = this.#options;
    try {
      return await inTime('Redis', this.#read(redis), timeoutMs);
    } catch (error) {
      if (redisFailureKind(error) !== 'rejected') leaveConnection(redis);
      throw error;
    }
  }

  async #read(redis: RedisClient): Promise<string | undefined> {
    const { problem } = await readRedisStatus(redis);
    if (problem !== undefined || this.#options.isAssumed) return problem;
    return (await this.#markedProblem(redis)) ?? problemOf(await readSettings(redis));
  }

  /**
   * Checks that Redis has loaded all data. If the user `default` lacks a right, Redis skips the transactions in its append-only file when
   * it starts (redis/redis#14541), and otherwise works as usual. All scripts of BullMQ and of API keys are transactions in that file.
   *
   * To detect skipped transactions, a transaction increments one key. Then a plain command, which Redis never skips, writes the same number
   * to a second key. A power cut or a failover loses only the latest commands, so the second number is never above the first. If the second
   * number is above the first, transactions are missing.
   */
  async #markedProblem(redis: RedisClient): Promise<string | undefined> {
    try {
      // Read the plain marker first. If another collector writes between the two reads, the plain number still cannot be too high.
      const plain = written.parse(await redis.get(PLAIN));
      const inTransaction = written.parse(await redis.get(IN_TRANSACTION));
      if ((plain ?? 0) > (inTransaction ?? 0)) return LEFT_OUT;
      if (inTransaction === null && this.#markedAtMs !== undefined) return EMPTY;
      if (this.#markedAtMs === undefined || performance.now() - this.#markedAtMs > MARK_AGAIN_AFTER_MS) {
        // The transaction has two commands, because Redis stores a transaction with a single command as a plain command.
        const results = await redis.multi().incr(IN_TRANSACTION).incr(IN_TRANSACTION).exec();
        const [, [, number]] = raised.parse(results);
        await redis.set(PLAIN, number);
        this.#markedAtMs = performance.now();
      }
      return undefined;
    } catch (error) {
      const replies = errorReplies(error);
      if (replies.some((message) => message.startsWith('NOPERM'))) return NOT_ALLOWED;
      if (replies.some((message) => message.startsWith('READONLY'))) return REPLICA;
      // Redis accepts no writes at the moment. Ignore this here, because the next write of events reports the reason.
      if (replies.some((message) => /^(EXECABORT|OOM|MISCONF|NOREPLICAS)/.test(message))) return undefined;
      throw error;
    }
  }
}

const DURABLE = { appendonly: 'yes', appendfsync: 'always', 'no-appendfsync-on-rewrite': 'no' } as const;
type Settings = Readonly<Partial<Record<string, string>>>;

const reply = z.array(z.string());

/** Reads the settings of the append-only file. Returns undefined if the user may not read the settings. @throws if Redis does not reply */
async function readSettings(redis: RedisClient): Promise<Settings | undefined> {
  try {
    const pairs = reply.parse(await redis.config('GET', '*append*'));
    return Object.fromEntries(pairs.flatMap((name, at) => (at % 2 === 0 ? [[name, pairs[at + 1]]] : [])));
  } catch (error) {
    // The user lacks the right, or a managed server has renamed the command.
    if (error instanceof Error && /^(NOPERM|ERR unknown command)/.test(error.message)) return undefined;
    throw error;
  }
}

function problemOf(settings: Settings | undefined): string | undefined {
  if (settings === undefined) {
    return 'does not show whether it is durable: let its user run CONFIG GET, or add ?durability=assumed to REDIS_URL if you know that it has appendonly yes and appendfsync always';
  }
  const wrong = Object.entries(DURABLE).filter(([name, value]) => settings[name] !== value);
  if (wrong.length === 0) return undefined;
  const found = wrong.map(([name]) => `${name} ${settings[name] ?? 'unknown'}`);
  const needed = wrong.map(([name, value]) => `${name} ${value}`);
  return `may lose events that it has accepted, with ${found.join(', ')}: set ${needed.join(', ')}`;
}

function errorReplies(error: unknown): string[] {
  if (!(error instanceof Error) || redisFailureKind(error) !== 'rejected') return [];
  const previous = 'previousErrors' in error && Array.isArray(error.previousErrors) ? error.previousErrors : [];
  return [...previous.flatMap(errorReplies), error.message];
}
