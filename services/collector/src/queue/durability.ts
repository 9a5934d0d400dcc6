/**
 * Whether what Redis has answered survives a failure of its machine: it does if Redis writes each command through to its disk
 * before it answers (Redis documentation, "Persistence", and flushAppendOnlyFile() in aof.c), and loads all of it at its next start.
 */

import { UnfitServer } from '@meterline/api';
import { inTime } from '@meterline/service';
import { leaveConnection, type RedisClient } from '@meterline/service/access';
import { z } from 'zod';
import { LoadMarker } from './load-marker.js';

/** How often the configuration is read again, which may change while Redis runs. */
const KNOWN_FOR_MS = 2_000;

export interface DurabilityOptions {
  /** The connection that events are written on. */
  readonly redis: RedisClient;
  /** The operator knows that Redis is durable, and it need not say so. */
  readonly isAssumed: boolean;
  /** How long Redis may take to tell its configuration. */
  readonly answerMs: number;
}

export class Durability {
  readonly #options: DurabilityOptions;
  readonly #marker = new LoadMarker();
  #known: { readonly fault: string | undefined; readonly atMs: number } | undefined;

  constructor(options: DurabilityOptions) {
    this.#options = options;
    // Behind the same address may be another server now.
    options.redis.on('close', () => this.#forget());
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

  #forget(): void {
    this.#known = undefined;
  }

  /** A connection whose other end is silent is left, as in usage-queue.ts: nothing may wait on it. */
  async #ask(): Promise<string | undefined> {
    const { answerMs, redis } = this.#options;
    try {
      return await inTime('Redis', this.#read(redis), answerMs);
    } catch (error) {
      if (!isAnswer(error)) leaveConnection(redis);
      throw error;
    }
  }

  async #read(redis: RedisClient): Promise<string | undefined> {
    return (await this.#marker.fault(redis)) ?? faultOf(await readSettings(redis));
  }

  /** To be called before each write. @throws UnfitServer, and as {@link fault} */
  async require(): Promise<void> {
    const fault = await this.fault();
    if (fault !== undefined) throw new UnfitServer(fault);
  }
}

/** Whether Redis itself has answered so; otherwise it is away or silent. */
export function isAnswer(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError';
}

/** Of a master that a replica may replace. Follows "Redis". */
export const UNREPLICATED =
  'may lose events together with a master, whose replica takes its place: add ?replicas=1 to REDIS_URL';

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
