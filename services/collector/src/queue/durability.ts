/**
 * Whether what Redis has answered survives a failure of its machine: it does if Redis writes each command through to its disk
 * before it answers (Redis documentation, "Persistence", and flushAppendOnlyFile() in aof.c), and loads all of it at its next start.
 */

import { UnfitServer } from '@meterline/api';
import { inTime } from '@meterline/service';
import { leaveConnection, REDIS_PREFIX, type RedisClient, redisFailureKind } from '@meterline/service/access';
import { z } from 'zod';

/** How often the configuration is read again, which may change while Redis runs. */
const KNOWN_FOR_MS = 2_000;

const IN_TRANSACTION = `${REDIS_PREFIX}:collector:marker`;
const PLAIN = `${IN_TRANSACTION}:plain`;
/** A rewrite of the file puts both keys where no transaction is left out, so they are written again and again. */
const MARK_AGAIN_AFTER_MS = 60_000;

const LEFT_OUT = `has left out jobs and API keys while it loaded its data: give its user default all rights, as redis/users.conf does, and start it again; if they cannot be had back, delete the key ${PLAIN}`;
const EMPTY =
  'has lost its data since this collector started: restore it, or start the collector again if it is meant to be empty';
const NOT_ALLOWED =
  'does not let its user write the keys that show whether it has loaded everything: give it the rights of collector in redis/users.conf';

const written = z.coerce.number().nullable();
const raised = z.tuple([z.unknown(), z.tuple([z.null(), z.number()])]);

interface DurabilityOptions {
  /** The connection that events are written on. */
  readonly redis: RedisClient;
  /** The operator knows that Redis is durable, and it need not say so. */
  readonly isAssumed: boolean;
  /** How long Redis may take to tell its configuration. */
  readonly answerMs: number;
}

export class Durability {
  readonly #options: DurabilityOptions;
  #known: { readonly fault: string | undefined; readonly atMs: number } | undefined;
  #markedAtMs: number | undefined;

  constructor(options: DurabilityOptions) {
    this.#options = options;
    // Behind the same address may be another server now.
    options.redis.on('close', () => {
      this.#known = undefined;
    });
  }

  /**
   * What is wrong with the configuration or with what was loaded, to follow "Redis"; undefined: nothing.
   * @throws when Redis does not answer
   */
  async fault(): Promise<string | undefined> {
    if (this.#options.isAssumed) return undefined;
    if (this.#known && performance.now() - this.#known.atMs < KNOWN_FOR_MS) return this.#known.fault;
    const fault = await this.#ask();
    this.#known = { fault, atMs: performance.now() };
    return fault;
  }

  /** A connection whose other end is silent is left, as in usage-queue.ts: nothing may wait on it. */
  async #ask(): Promise<string | undefined> {
    const { answerMs, redis } = this.#options;
    try {
      return await inTime('Redis', this.#read(redis), answerMs);
    } catch (error) {
      if (redisFailureKind(error) !== 'refused') leaveConnection(redis);
      throw error;
    }
  }

  async #read(redis: RedisClient): Promise<string | undefined> {
    return (await this.#markedFault(redis)) ?? faultOf(await readSettings(redis));
  }

  /**
   * Whether Redis has everything that was written to it. Redis leaves transactions out while it loads its append-only file when its user
   * `default` lacks a right (redis/redis#14541), and all scripts of BullMQ and of API keys are transactions there. It then answers as
   * always.
   *
   * A transaction raises one key, and only then a plain command, which is never left out, writes the same number to another. Whatever a
   * power cut or a failover takes from the end of what was written, the second is never above the first. If it is, transactions are missing.
   */
  async #markedFault(redis: RedisClient): Promise<string | undefined> {
    try {
      // In this order: another collector may write between the two.
      const plain = written.parse(await redis.get(PLAIN));
      const inTransaction = written.parse(await redis.get(IN_TRANSACTION));
      if ((plain ?? 0) > (inTransaction ?? 0)) return LEFT_OUT;
      if (inTransaction === null && this.#markedAtMs !== undefined) return EMPTY;
      if (this.#markedAtMs === undefined || performance.now() - this.#markedAtMs > MARK_AGAIN_AFTER_MS) {
        // Two commands: the file has a transaction of one as a plain command.
        const results = await redis.multi().incr(IN_TRANSACTION).incr(IN_TRANSACTION).exec();
        const [, [, number]] = raised.parse(results);
        await redis.set(PLAIN, number);
        this.#markedAtMs = performance.now();
      }
      return undefined;
    } catch (error) {
      const answers = answersIn(error);
      if (answers.some((message) => message.startsWith('NOPERM'))) return NOT_ALLOWED;
      // It is full, or a replica: what is written next fails for the same reason.
      if (answers.some((message) => /^(EXECABORT|OOM|READONLY|MISCONF|NOREPLICAS)/.test(message))) return undefined;
      throw error;
    }
  }

  /** To be called before each write. @throws UnfitServer, and as {@link fault} */
  async require(): Promise<void> {
    const fault = await this.fault();
    if (fault !== undefined) throw new UnfitServer(fault);
  }
}

const DURABLE = { appendonly: 'yes', appendfsync: 'always', 'no-appendfsync-on-rewrite': 'no' } as const;
type Settings = Readonly<Partial<Record<string, string>>>;

const reply = z.array(z.string());

/** Undefined: Redis does not tell. @throws when it does not answer */
async function readSettings(redis: RedisClient): Promise<Settings | undefined> {
  try {
    const pairs = reply.parse(await redis.config('GET', '*append*'));
    return Object.fromEntries(pairs.flatMap((name, at) => (at % 2 === 0 ? [[name, pairs[at + 1]]] : [])));
  } catch (error) {
    // No right to ask, or no such command: managed servers rename it.
    if (error instanceof Error && /^(NOPERM|ERR unknown command)/.test(error.message)) return undefined;
    throw error;
  }
}

function faultOf(settings: Settings | undefined): string | undefined {
  if (settings === undefined) {
    return 'does not tell whether it is durable: let its user run CONFIG GET, or add ?durability=assumed to REDIS_URL if you know that it has appendonly yes and appendfsync always';
  }
  const wrong = Object.entries(DURABLE).filter(([name, value]) => settings[name] !== value);
  if (wrong.length === 0) return undefined;
  const found = wrong.map(([name]) => `${name} ${settings[name] ?? 'unknown'}`);
  const needed = wrong.map(([name, value]) => `${name} ${value}`);
  return `may lose events that it has taken, with ${found.join(', ')}: set ${needed.join(', ')}`;
}

/** What Redis has answered, also to the commands of a transaction. */
function answersIn(error: unknown): string[] {
  if (!(error instanceof Error) || redisFailureKind(error) !== 'refused') return [];
  const previous = 'previousErrors' in error && Array.isArray(error.previousErrors) ? error.previousErrors : [];
  return [...previous.flatMap(answersIn), error.message];
}
