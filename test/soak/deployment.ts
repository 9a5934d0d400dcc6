/** Two processes of each service on servers of their own, and what is done to them. The first of each kind is never killed, only frozen. */
import { fileURLToPath } from 'node:url';
import { NODE_OPTIONS } from '@meterline/local-stack';
import type { Fixture } from '../faults/fixture.js';
import { SeededRandom } from '../faults/seeded-random.js';
import { pause } from '../faults/waiting.js';
import { type ServiceProcess, startCollector, startIngest, startQuery } from '../harness/services.js';

const CLOCK = fileURLToPath(new URL('../../test/faults/skewed-clock.mjs', import.meta.url));
/** An hour of two minutes. */
const CLOCK_RATE = 30;
const CURSOR_SECRET = 'a secret of the soak test, 32 characters or more';
/** Longer than the lock of a job. */
const FROZEN_MS = 18_000;
const AWAY_MS = 1_500;

/** The processes that a run does not replace, once it has killed ClickHouse and Redis. */
export const LASTING_SERVICES = ['ingest 1', 'collector 1', 'query 1'];
export const LASTING = [...LASTING_SERVICES, 'ClickHouse', 'Redis'];

interface Process extends ServiceProcess {
  readonly url?: string;
}
type Kind = 'ingest' | 'collector' | 'query';

export class Deployment {
  readonly #fixture: Fixture;
  readonly #random: SeededRandom;
  readonly #rightAt: number;
  readonly #starts: Readonly<Record<Kind, () => Promise<Process>>>;
  readonly #processes = new Map<string, Process>();

  /** @param rightAt when the workers' clocks, which are behind and run faster, are right */
  constructor(fixture: Fixture, seed: number, rightAt: number) {
    this.#fixture = fixture;
    this.#random = new SeededRandom(seed + 1);
    this.#rightAt = rightAt;
    const env = fixture.environment('nothing').worker;
    const clock = {
      NODE_OPTIONS: `${NODE_OPTIONS.ingest} --import=${CLOCK}`,
      METERLINE_TEST_CLOCK_RATE: String(CLOCK_RATE),
      METERLINE_TEST_CLOCK_RIGHT_AT: String(rightAt),
    };
    this.#starts = {
      ingest: () => startIngest({ ...env, ...clock }),
      collector: () => startCollector(env),
      query: () => startQuery({ ...env, CURSOR_SECRET }),
    };
  }

  async start(): Promise<void> {
    for (const kind of ['ingest', 'collector', 'query'] as const) {
      for (const n of [1, 2]) this.#processes.set(`${kind} ${n}`, await this.#starts[kind]());
    }
  }

  /** What a worker's clock shows now. */
  readonly workerTime = (): number => Math.floor(this.#rightAt + (Date.now() - this.#rightAt) * CLOCK_RATE);

  /** Of one of both processes, whichever. */
  url(kind: 'collector' | 'query'): string {
    return this.#processes.get(`${kind} ${this.#random.integer(1, 2)}`)?.url ?? '';
  }

  /** By the name of the process. */
  get pids(): Readonly<Record<string, number>> {
    const { clickhouse, redis } = this.#fixture;
    const services = [...this.#processes].map(([name, { pid }]) => [name, pid]);
    return { ...Object.fromEntries(services), ClickHouse: clickhouse.running.pid, Redis: redis.running.pid };
  }

  /** Both servers first, so that they live for the rest of the run; then one of our processes at a time. @throws AbortError */
  async inject(everyMs: number, signal: AbortSignal, say: (what: string) => void): Promise<void> {
    const servers = [this.#fixture.clickhouse, this.#fixture.redis];
    for (;;) {
      await pause(everyMs, signal);
      const server = servers.shift();
      const kind = this.#random.pick(['ingest', 'collector', 'query'] as const);
      const freezes = this.#random.chance(0.3);
      const name = freezes ? `${kind} ${this.#random.integer(1, 2)}` : `${kind} 2`;
      if (server) {
        say(`kill -9 of ${servers.length === 1 ? 'ClickHouse' : 'Redis'}`);
        await server.kill();
        await pause(AWAY_MS, signal);
        await server.start();
      } else if (freezes) {
        say(`${name} frozen for ${FROZEN_MS / 1000} s`);
        const { pid = 0 } = this.#processes.get(name) ?? {};
        process.kill(pid, 'SIGSTOP');
        await pause(FROZEN_MS, signal).finally(() => process.kill(pid, 'SIGCONT'));
      } else {
        say(`kill -9 of ${name}`);
        await this.#processes.get(name)?.kill();
        await pause(AWAY_MS, signal);
        this.#processes.set(name, await this.#starts[kind]());
      }
    }
  }
}
