/**
 * The first page of an answer with many groups compared with one statement by hand, and page 2 with page 200: both are read from
 * the groups that were stored when page 2 was first asked for.
 */
import { formatTimestamp, MS_PER_DAY, type Window } from '@meterline/catalog';
import { z } from 'zod';
import { execute } from '../stack.js';
import type { Bench } from './bench.js';
import { CORPUS_START } from './corpus.js';
import { median } from './figure.js';
import { BareClickHouse, checked, HttpClient } from './http-client.js';
import { measureInTurn } from './measure.js';
import { metricsPath } from './questions.js';

const DATABASE = 'pages';
const ACCOUNT = 'many-groups';
const GROUPS = 25_000;
const LATE_PAGE = 200;
const RUNS = 25;
const WARM_UP_MS = 3_000;
/** The time of a page is mostly for its hundred groups; a difference up to this factor is noise of a millisecond. */
const ALLOWED = 1.3;

const DAY: Window = {
  startTime: Math.floor(CORPUS_START / MS_PER_DAY) * MS_PER_DAY,
  endTime: (Math.floor(CORPUS_START / MS_PER_DAY) + 1) * MS_PER_DAY,
};

const FILL = `
INSERT INTO usage_events (account_id, event_id, timestamp, workspace, resource_type, resource_name, resource_uuid,
                          billing_dimension, usage, revision, voided, cost, price_revision, price_book)
SELECT '${ACCOUNT}', generateUUIDv4(), toDateTime64({start: UInt32}, 3, 'UTC') + number % 86400, 'production', 'sandbox', 'sandbox',
       toString(generateUUIDv4()), 'sandbox_compute_runtime_gbs', number % 977, 0, false, number % 977 * 0.0000115, 0, 0
FROM numbers(${GROUPS})`;

/** The first hundred groups with what all of a group has in common, and the totals of all. Nothing is sealed, so from events. */
const BY_HAND = `
SELECT resource_uuid, if(min(workspace) = max(workspace), min(workspace), ''), min(resource_type), min(resource_name),
       sum(usage_events.cost) AS cost, sum(usage_events.usage) AS usage,
       sumMap([toInt32(intDiv(toUInt32(event_hour) - {from: UInt32}, 86400))], [usage_events.cost], [usage_events.usage]),
       sum(cost) OVER (), sum(usage) OVER (), count() OVER ()
FROM usage_events FINAL
WHERE account_id = '${ACCOUNT}' AND event_hour >= {from: UInt32} AND event_hour < {to: UInt32} AND NOT voided
GROUP BY resource_uuid
ORDER BY cost DESC, resource_uuid
LIMIT 100
SETTINGS do_not_merge_across_partitions_select_final = 1
FORMAT JSONCompactEachRow`;

const pageBody = z.object({ data: z.array(z.unknown()), meta: z.object({ nextCursor: z.string() }) });

export const pages: Bench = {
  name: 'pages',
  async run({ site }) {
    const warehouse = await site.warehouse(DATABASE);
    await execute(warehouse, FILL, { start: DAY.startTime / 1000 });
    const key = await site.createKey(ACCOUNT, 'bench-pages');
    const http = new HttpClient();
    const clickhouse = new BareClickHouse(site.clickhouse, DATABASE);
    const path = metricsPath(ACCOUNT, { window: DAY, resolution: 'daily', groupBy: ['resource_uuid'] });
    try {
      return await site.withQuery(DATABASE, async ({ url }) => {
        const get = async (cursor: string) => {
          const address = `${url}${path}${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`;
          return checked(await http.send(address, { authorization: `Bearer ${key}` }));
        };
        const seconds = { from: DAY.startTime / 1000, to: DAY.endTime / 1000 };
        const [firstRuns, handRuns] = await measureInTurn(
          async () => (await get('')).ms,
          async () => (await clickhouse.run(BY_HAND, seconds)).ms,
          { runs: RUNS, warmUpMs: WARM_UP_MS },
        );
        const hand = median(handRuns);
        const mostForFirst = 1.3 * hand + 3;
        const first = await get('');
        const storing = await get(nextCursor(first.text));
        const cursors = ['', nextCursor(first.text)];
        for (let cursor = nextCursor(storing.text); cursor !== ''; cursor = nextCursor((await get(cursor)).text)) {
          cursors.push(cursor);
        }
        if (cursors.length !== GROUPS / 100) throw new Error(`there are ${cursors.length} pages`);
        const page = (number: number) => async () => (await get(cursors[number - 1] ?? '')).ms;
        const [secondRuns, lateRuns] = await measureInTurn(page(2), page(LATE_PAGE), { runs: RUNS });
        const value = median(lateRuns);
        const second = median(secondRuns);
        return [
          {
            bench: 'pages',
            what: `page 1, ${GROUPS.toLocaleString('en')} groups`,
            value: median(firstRuns),
            unit: 'ms',
            runs: firstRuns,
            beside: [{ what: '(a) by hand', value: hand, unit: 'ms' }],
            reach: {
              text: `≤ ${mostForFirst.toFixed(1)} ms = 1.3 (a) + 3`,
              met: median(firstRuns) <= mostForFirst,
            },
          },
          {
            bench: 'pages',
            what: `page ${LATE_PAGE} of ${cursors.length}, ${GROUPS.toLocaleString('en')} groups`,
            value,
            unit: 'ms',
            runs: lateRuns,
            beside: [
              { what: 'page 2', value: second, unit: 'ms' },
              { what: 'page 2 when it stores the answer', value: storing.ms, unit: 'ms' },
            ],
            reach: { text: `≤ ${ALLOWED}× page 2`, met: value <= ALLOWED * second + 1 },
            note: `from ${formatTimestamp(DAY.startTime)}, a day`,
          },
        ];
      });
    } finally {
      http.close();
      clickhouse.close();
      await site.drop(DATABASE);
    }
  },
};

function nextCursor(text: string): string {
  return pageBody.parse(JSON.parse(text)).meta.nextCursor;
}
