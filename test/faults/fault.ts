import type { SeededRandom } from './seeded-random.js';
import type { Proxied, Site } from './site.js';
import type { WorkerPool } from './worker-pool.js';

/** What a fault may break, while events are being sent and workers are at work. */
export interface Scene {
  readonly site: Site;
  readonly workers: WorkerPool;
  readonly random: SeededRandom;
  /** In the short form: seconds where the long form takes up to a minute. */
  readonly brief: boolean;
  readonly signal: AbortSignal;
  /** Whether a worker has jobs in work right now. */
  isBusy(): Promise<boolean>;
  /** Notes what breaks a promise without a lost or doubled event to show for it. */
  complain(what: string): void;
}

export interface Fault {
  readonly name: string;
  readonly injects: string;
  readonly workers: 1 | 2;
  readonly proxied: Proxied;
  /** How many of the rounds are of this fault, beside the others. */
  readonly weight: number;
  /** Resolves when the fault is over: whatever it took away is there again. */
  readonly strike: (scene: Scene) => Promise<void>;
}
