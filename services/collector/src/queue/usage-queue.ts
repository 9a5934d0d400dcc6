/**
 * The queue that events are written to, on a connection of its own, while Redis is durable. A write ends after some seconds, whatever Redis
 * does: BullMQ by itself waits without end. What is not known to be durable is reported as not accepted; sending the same events
 * again is harmless.
 */
import { requireFit } from '@meterline/api';
import { QUEUE_NAME } from '@meterline/catalog';
import { connectRedis, inTime, StartError, shared } from '@meterline/service';
import {
  createRedisClient,
  leaveConnection,
  NotReplicated,
  REDIS_POLICIES,
  REDIS_PREFIX,
  type RedisClient,
  readRedisStatus,
  redisFailureKind,
  replicated,
} from '@meterline/service/access';
import { parseRedisUrl } from '@meterline/service/redis-address';
import { Queue, type Telemetry } from 'bullmq';
import { z } from 'zod';

const JOB_NAME = 'usage';
const UNREPLICATED =
  'Redis may lose events together with a master, whose replica takes its place: add ?replicas=1 to REDIS_URL';
/** The share of the time for a write that replicas have: replicas that are late are a response, and no reason to connect again. */
const WAIT_SHARE = 0.75;

interface UsageQueueOptions {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly writeMs: number;
  readonly telemetry: Telemetry | undefined;
}

export class UsageQueue {
  readonly #redis: RedisClient;
  readonly #queue: Queue;
  readonly #durability: Durability;
  /** How many replicas must have the events before they count as taken. */
  readonly #replicas: number;
  readonly #writeMs: number;

  private constructor(redis: RedisClient, { redisUrl, prefix, writeMs, telemetry }: UsageQueueOptions) {
    const { masterName, replicas, isDurabilityAssumed: isAssumed } = parseRedisUrl(redisUrl);
    if (masterName !== undefined && replicas === 0 && !isAssumed) throw new StartError(UNREPLICATED);
    this.#redis = redis;
    this.#replicas = replicas;
    this.#writeMs = writeMs;
    this.#durability = new Durability({ redis, isAssumed, responseMs: writeMs });
    this.#queue = new Queue(QUEUE_NAME, { connection: redis, prefix, ...(telemetry && { telemetry }) });
    // These errors reject what is being written as well, and the connection's outage is logged where it is watched.
    this.#queue.on('error', () => undefined);
  }

  /** @throws StartError when Redis does not answer, or is not durable */
  static async open(options: UsageQueueOptions): Promise<UsageQueue> {
    const redis = createRedisClient(options.redisUrl, REDIS_POLICIES.producer);
    try {
      await connectRedis(redis, options.redisUrl);
      // These errors reject what is being written as well.
      redis.on('error', () => undefined);
      const queue = new UsageQueue(redis, options);
      await queue.#queue.waitUntilReady();
      const problem = await queue.#durability.problem();
      if (problem !== undefined) throw new StartError(`Redis ${problem}`);
      return queue;
    } catch (error) {
      redis.disconnect();
      throw error;
    }
  }

  /**
   * Adds a job with these events. It is in the queue, durable, when this resolves.
   * @throws when Redis refuses, is away, is not durable, or does not answer in time; the job may be in the queue all the same
   */
  async add(events: readonly object[]): Promise<void> {
    await this.require();
    const timeoutMs = Math.ceil(this.#writeMs * WAIT_SHARE);
    const add = () => this.#queue.add(JOB_NAME, { events });
    try {
      await inTime('Redis', replicated(this.#redis, add, { replicas: this.#replicas, timeoutMs }), this.#writeMs);
    } catch (error) {
      // What was not sent yet would stay in memory for as long as the other end is silent.
      if (redisFailureKind(error) !== 'rejected' && !(error instanceof NotReplicated)) leaveConnection(this.#redis);
      throw error;
    }
  }

  /** Resolves when it would take events. @throws otherwise */
  async require(): Promise<void> {
    requireFit(await this.#durability.problem());
  }

  disconnect(): void {
    this.#redis.disconnect();
  }
}

/** How often the configuration is read again, which may change while Redis runs. */
const KNOWN_FOR_MS = 2_000;

const IN_TRANSACTION = `${REDIS_PREFIX}:collector:marker`;
const PLAIN = `${IN_TRANSACTION}:plain`;
/** A rewrite of the file puts both keys where no transaction is left out, so they are written again and again. */
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
  /** The operator knows that Redis is durable, and it need not say so. */
  readonly isAssumed: boolean;
  /** How long Redis may take to tell its configuration. */
  readonly responseMs: number;
}

/**
 * Whether what Redis has answered survives a failure of its machine: it does if Redis writes each command through to its disk
 * before it answers (Redis documentation, "Persistence", and flushAppendOnlyFile() in aof.c), and loads all of it at its next start.
 */
class Durability {
  readonly #options: DurabilityOptions;
  #known: { readonly problem: string | undefined; readonly atMs: number } | undefined;
  #markedAtMs: number | undefined;

  constructor(options: DurabilityOptions) {
    this.#options = options;
    // Behind the same address may be another server now.
    options.redis.on('close', () => {
      this.#known = undefined;
    });
  }

  /**
   * What is wrong with the server, its configuration or what it loaded, to follow "Redis"; undefined: nothing.
   * @throws when Redis does not answer
   */
  async problem(): Promise<string | undefined> {
    if (this.#known && performance.now() - this.#known.atMs < KNOWN_FOR_MS) return this.#known.problem;
    return this.#refresh();
  }

  /** Requests at the same time share one reading, which their writes wait for. */
  readonly #refresh = shared(async () => {
    const problem = await this.#ask();
    this.#known = { problem, atMs: performance.now() };
    return problem;
  });

  /** A connection whose other end is silent is left, as in `add`: nothing may wait on it. */
  async #ask(): Promise<string | undefined> {
    const { responseMs, redis } = this.#options;
    try {
      return await inTime('Redis', this.#read(redis), responseMs);
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
   * Whether Redis has everything that was written to it. Redis leaves transactions out while it loads its append-only file when its user
   * `default` lacks a right (redis/redis#14541), and all scripts of BullMQ and of API keys are transactions there. It then answers as
   * always.
   *
   * A transaction raises one key, and only then a plain command, which is never left out, writes the same number to another. Whatever a
   * power cut or a failover takes from the end of what was written, the second is never above the first. If it is, transactions are missing.
   */
  async #markedProblem(redis: RedisClient): Promise<string | undefined> {
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
      const responses = answersIn(error);
      if (responses.some((message) => message.startsWith('NOPERM'))) return NOT_ALLOWED;
      if (responses.some((message) => message.startsWith('READONLY'))) return REPLICA;
      // Redis takes no writes: what is written next fails for the same reason.
      if (responses.some((message) => /^(EXECABORT|OOM|MISCONF|NOREPLICAS)/.test(message))) return undefined;
      throw error;
    }
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

function problemOf(settings: Settings | undefined): string | undefined {
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
  if (!(error instanceof Error) || redisFailureKind(error) !== 'rejected') return [];
  const previous = 'previousErrors' in error && Array.isArray(error.previousErrors) ? error.previousErrors : [];
  return [...previous.flatMap(answersIn), error.message];
}
