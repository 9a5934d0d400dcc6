/** What befalls a producer while it records. */
import type { SeededRandom } from '../faults/seeded-random.js';
import type { TcpProxy } from '../faults/tcp-proxy.js';
import { pause } from '../faults/waiting.js';
import type { Runtime } from './runtime.js';

export interface ProducerScene {
  /** Between the producer and its door: Redis, or the collector. */
  readonly link: TcpProxy;
  readonly random: SeededRandom;
  /** The short form: a fault lasts about a second, where the long form takes up to half a minute. */
  readonly brief: boolean;
  readonly signal: AbortSignal;
  /** The producer that runs now. */
  readonly producer: () => Runtime;
  /** Starts the next one; the one before has ended. */
  readonly startNext: () => Promise<void>;
  /** Kills Redis and starts it again. */
  readonly restartRedis: (afterMs: number) => Promise<void>;
  /** Kills the collector and starts it again, with the same address. */
  readonly restartCollector: (afterMs: number) => Promise<void>;
  complain(what: string): void;
}

/** Where producers send events: straight to the queue, or to a collector. */
export const DOORS = ['queue', 'collector'] as const;
export type Door = (typeof DOORS)[number];

export interface ProducerFault {
  readonly name: string;
  readonly injects: string;
  /** The only door that it is about; without it both. */
  readonly door?: Door;
  readonly strike: (scene: ProducerScene) => Promise<void>;
}

export const PRODUCER_FAULTS: readonly ProducerFault[] = [
  {
    name: 'killed',
    injects: '`kill -9` of the producer, one to three times, started again after a moment',
    strike: async (scene) => {
      const { random, signal, producer, startNext } = scene;
      for (let times = random.integer(1, 3); times > 0; times -= 1) {
        await producer().end('SIGKILL');
        await pause(random.integer(0, 200), signal);
        await startNext();
        await pause(random.integer(0, 500), signal);
      }
    },
  },
  {
    name: 'cut-off-and-killed',
    injects: '`kill -9` of the producer while nothing gets through to its door; then both are back',
    strike: async (scene) => {
      const { link, random, signal, producer, startNext } = scene;
      link.treat({ kind: random.pick(['hang', 'refuse']) });
      await pause(random.integer(200, 800), signal);
      await producer().end('SIGKILL');
      link.treat({ kind: 'pass' });
      await startNext();
    },
  },
  {
    name: 'frozen',
    injects: 'SIGSTOP of the producer, in the long form for longer than an attempt may take; then SIGCONT',
    strike: async ({ random, brief, signal, producer }) => {
      producer().signal('SIGSTOP');
      try {
        await pause(brief ? 600 : random.integer(1_000, 15_000), signal);
      } finally {
        producer().signal('SIGCONT');
      }
    },
  },
  {
    name: 'cut-off',
    injects:
      'connections to the door hang, are refused, break in the middle of a job or, in the long form, are silent for ever',
    strike: async (scene) => {
      const { link, random, brief, signal } = scene;
      if (!brief && random.chance(0.25)) return link.forsake();
      const breaks = { kind: 'cut', afterBytes: () => random.integer(1, 40_000) } as const;
      // Attempts fail at once, where one that hangs may still succeed.
      link.treat(brief ? { kind: 'refuse' } : random.pick([{ kind: 'hang' }, { kind: 'refuse' }, breaks]));
      await pause(brief ? 600 : random.integer(1_000, 25_000), signal);
      link.treat({ kind: 'pass' });
    },
  },
  {
    name: 'redis-killed',
    injects: '`kill -9` of Redis, restarted with its append-only file',
    strike: ({ random, restartRedis }) => restartRedis(random.integer(0, 3_000)),
  },
  {
    name: 'collector-killed',
    injects: '`kill -9` of the collector, one to three times, started again after a moment',
    door: 'collector',
    strike: async ({ random, signal, brief, restartCollector }) => {
      for (let times = brief ? 1 : random.integer(1, 3); times > 0; times -= 1) {
        await restartCollector(brief ? 0 : random.integer(0, 3_000));
        await pause(random.integer(0, 500), signal);
      }
    },
  },
  {
    name: 'terminated',
    injects: 'SIGTERM of the producer, which closes its emitter and ends; then another one starts',
    strike: async ({ producer, startNext, complain }) => {
      const end = await producer().end('SIGTERM');
      if (end !== 'SIGTERM') complain(`a producer ended with ${end} instead of SIGTERM`);
      await startNext();
    },
  },
];
