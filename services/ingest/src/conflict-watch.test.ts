import { expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK } from '@meterline/catalog';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { usageEvent } from '../../../test/e2e/pipeline.js';
import { ConflictWatch } from './conflict-watch.js';
import { takeIn } from './intake.js';
import { createIngestMetrics } from './metrics.js';

it('counts each conflict, tells of one at once and of the others with it a minute later', async () => {
  const lines: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const { conflictingPayloads } = createIngestMetrics(new Registry());
  let now = Date.UTC(2026, 5, 1);
  const watch = new ConflictWatch(conflictingPayloads, log, () => now);
  /** Event number n, twice, with different usage. */
  const conflict = (n: number) => {
    const data = JSON.stringify({ events: [usageEvent(n), usageEvent(n, { usage: 2 })] });
    watch.look(takeIn({ id: '1', receivedAt: now, data }, DEFAULT_PRICE_BOOK, now));
  };

  for (const n of [1, 2, 3]) conflict(n);
  now += 60_000;
  conflict(4);
  expect((await conflictingPayloads.get()).values).toMatchObject([{ value: 4 }]);
  expect(lines).toMatchObject([
    { event: 'conflicting_payloads', conflicts: 1, accountId: 'acme', eventId: usageEvent(1).eventId, revision: 0 },
    { event: 'conflicting_payloads', conflicts: 3, eventId: usageEvent(4).eventId },
  ]);
});
