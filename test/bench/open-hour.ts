/** Queries about an hour that is not sealed, of one large account: read from its events, whose ids are of version 7. */
import type { EpochMs } from '@meterline/catalog';
import { LARGE_ACCOUNT } from './corpus.js';
import { withApi } from './dashboard.js';
import { below, type Figure, measure, median, medianOf } from './figure.js';
import { fillUsage, SANDBOX } from './fill.js';
import type { Bench } from './fixture.js';
import type { Query } from './queries.js';

/** Of `--events`, and no more than four million. */
const SHARE_OF_EVENTS = 5;
const MOST_EVENTS = 4_000_000;
const INSERTS = 80;
const DATABASE = 'open_hour';
const HOUR: EpochMs = Date.UTC(2025, 9, 20, 12);
const GOAL_MS = 300;
const MINUTE = 60_000;

const COLUMNS = {
  ...{ ...SANDBOX, account: '{account: String}', at: '{hour: Int64} + intDiv(number * 3599000, {events: UInt32})' },
  workspace: "concat('workspace-', toString(number % 8))",
  ...{ resourceName: "concat('sandbox-', toString(number % 400))", resourceUuid: "''" },
};
const part = (from: number, to: number) => ({
  window: { startTime: HOUR + from * MINUTE, endTime: HOUR + to * MINUTE },
  resolution: 'hourly' as const,
});
const QUERIES: readonly Query[] = [
  { title: 'total', ...part(0, 60), groupBy: [] },
  { title: 'by workspace', ...part(0, 60), groupBy: ['workspace'] },
  { title: 'by name', ...part(0, 60), groupBy: ['resource_name'] },
  { title: 'by workspace, half an hour of it', ...part(15, 45), groupBy: ['workspace'] },
];

export const openHour: Bench = {
  name: 'open-hour',
  async run(context) {
    const { fixture, signal } = context;
    const events = Math.min(MOST_EVENTS, Math.ceil(context.events / SHARE_OF_EVENTS));
    const product = await fixture.product(DATABASE);
    const rows = Math.ceil(events / INSERTS);
    // In the order of their times, a batch after the other, as workers insert.
    for (let first = 0; first < events; first += rows) {
      signal.throwIfAborted();
      await fillUsage(product.warehouse, COLUMNS, [], { account: LARGE_ACCOUNT, hour: HOUR, first, rows, events });
    }
    const figures = await withApi(context, product, async (ask) => {
      const measured: Figure[] = [];
      for (const query of QUERIES) {
        const figure = medianOf(
          `${query.title}, ${events.toLocaleString('en')} events`,
          'ms',
          await measure(() => ask(query)),
        );
        measured.push({ ...figure, reach: below(median(figure.runs), GOAL_MS, 'ms') });
      }
      return measured;
    });
    await fixture.drop(DATABASE);
    return figures;
  },
};
