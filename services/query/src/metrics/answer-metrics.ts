/** How many answers did not have to be computed, and the memory of those that are kept. */
import { Counter, Gauge, type Registry } from 'prom-client';
import { KeptAnswers, type Outcome } from './kept-answers.js';

/** @param maxBytes as for {@link KeptAnswers} */
export function observedAnswers(registry: Registry, maxBytes: number): KeptAnswers {
  const answers = new Counter<'from'>({
    name: 'meterline_kept_answers_total',
    help: 'First pages of metrics that were kept (hit), taken from a request that computed them already (shared), or computed (miss).',
    labelNames: ['from'],
    registers: [registry],
  });
  for (const from of ['hit', 'shared', 'miss'] as const satisfies readonly Outcome[]) answers.inc({ from }, 0);
  const kept = new KeptAnswers(maxBytes, (from) => answers.inc({ from }));
  new Gauge({
    name: 'meterline_kept_answers_bytes',
    help: 'Memory of the answers that are kept.',
    registers: [registry],
    collect() {
      this.set(kept.bytes);
    },
  });
  return kept;
}
