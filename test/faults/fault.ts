import type { Asker } from './accepted-events.js';
import type { RedisForm } from './round-queues.js';
import type { SeededRandom } from './seeded-random.js';
import type { Proxied, Site } from './site.js';
import type { UsageStream } from './stream.js';
import type { WorkerPool } from './worker-pool.js';

/** What a fault may break, while events are sent and workers process them. */
export interface Scene {
  readonly site: Site;
  readonly workers: WorkerPool;
  readonly stream: UsageStream;
  /** The query API as it is now, with a key of the stream's account. */
  readonly asker: () => Asker;
  readonly random: SeededRandom;
  /** The short form: a fault lasts seconds, where the long form takes up to a minute. */
  readonly brief: boolean;
  readonly signal: AbortSignal;
  /** Whether a worker has active jobs now. */
  isBusy(): Promise<boolean>;
  /** Reports a fault of the product other than a lost or doubled event. */
  complain(what: string): void;
}

export interface Fault {
  readonly name: string;
  readonly injects: string;
  readonly workers: 1 | 2;
  readonly proxied: Proxied;
  /** The share of rounds with this fault, relative to the weights of the others. */
  readonly weight: number;
  /** Whether the site's data must lie on a small disk of its own, which can be filled. */
  readonly needsSmallDisk?: true;
  /** The form of Redis that it strikes; undefined: none, so that every form will do. */
  readonly redis?: RedisForm;
  /** Resolves when the fault is over and everything that it stopped runs again. */
  readonly strike: (scene: Scene) => Promise<void>;
}
