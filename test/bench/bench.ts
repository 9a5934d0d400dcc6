/** A bench has a name for `--only`, and a run that measures and reports. */
import type { Figure } from './figure.js';
import type { BenchOptions } from './options.js';
import type { Site } from './site.js';

export interface BenchContext {
  readonly site: Site;
  readonly options: BenchOptions;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

export interface Bench {
  readonly name: string;
  readonly run: (context: BenchContext) => Promise<Figure[]>;
}
