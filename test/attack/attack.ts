import type { SeededRandom } from '../faults/seeded-random.js';
import type { Findings } from './findings.js';
import type { AttackSite } from './site.js';

export interface Attacked {
  readonly site: AttackSite;
  readonly random: SeededRandom;
  /** About how many requests, and events, the attack sends. */
  readonly requests: number;
  readonly events: number;
  /** Collects what did not hold. */
  readonly findings: Findings;
}

export interface AttackReport {
  readonly sent: string;
  /** How the service stood it: figures for people. */
  readonly stood: string;
}

export interface Attack {
  readonly name: string;
  readonly what: string;
  /** @throws Error when the attack itself cannot be made */
  readonly run: (attacked: Attacked) => Promise<AttackReport>;
}
