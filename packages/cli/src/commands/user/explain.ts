/** The `meterline explain` and `meterline resource-types` commands. */
import {
  DEFAULT_EVENTS_PAGE,
  type DecimalText,
  EVENT_SORT_KEYS,
  EVENT_SORT_ORDERS,
  formatUsage,
  formatUsdExact,
  MAX_EVENTS_PAGE,
  priceText,
  replacedText,
  sumDecimals,
  unitOf,
} from '@meterline/catalog';
import { allEvents, type EventPage, type EventRevision, type EventsQuery, eventsCsv } from '@meterline/client';
import { type Command, Option } from 'commander';
import { type CommandContext, formatCount, say } from '../../command.js';
import { type AccountSession, withAccount } from '../../connections/api.js';
import { usageError } from '../../failure.js';
import { formOf, type OutputFlags, wholeNumber, withApiFlags, withOutput } from '../../flags.js';
import {
  CURSOR_HELP,
  type EventsFlags,
  eventsQueryOf,
  type FilterFlags,
  type WindowFlags,
  windowOf,
  withFilters,
  withWindow,
} from '../../metrics/query.js';
import { printResult } from '../../output/result.js';
import { type Column, layoutFor, type Row, textTable } from '../../output/table.js';
import { PageProgress, writeWhole } from '../../output/whole-output.js';
import { API_SETTINGS_HELP, type ApiFlags } from '../../settings.js';
import { warnOfTypingErrors } from '../../typing-errors.js';

type ExplainFlags = ApiFlags & EventsFlags & OutputFlags & { readonly all?: boolean };

const EXAMPLES = `
Examples:
  meterline explain --from 2026-11-02T10:00:00Z --to 2026-11-02T11:00:00Z --filter resourceName=crawler
  meterline explain --month 2026-10 --order-by cost --order desc --limit 20
  meterline explain --month 2026-10 --all --csv > events.csv
  meterline explain --since 1h --include-voided --json | jq '.data[] | select(.revision > 0)'`;

const UNSORTED =
  '--all --json prints events by time, one page after another: leave out --order-by, and sort with jq, or use --csv';

const COLUMNS: readonly Column[] = [
  { heading: 'TIME' },
  { heading: 'EVENT' },
  { heading: 'WORKSPACE', minWidth: 6 },
  { heading: 'RESOURCE', minWidth: 6 },
  { heading: 'DIMENSION', minWidth: 9 },
  { heading: 'USAGE', isNumeric: true },
  { heading: 'PRICE', isNumeric: true },
  { heading: 'COST', isNumeric: true },
];

export function withEvents(command: Command): Command {
  return withFilters(withWindow(withApiFlags(command)))
    .option('--include-voided', 'Include voided events, which do not count')
    .addOption(
      new Option('--order-by <key>', 'Order by the hour of the timestamp, or by cost (default: timestamp)').choices(
        EVENT_SORT_KEYS,
      ),
    )
    .addOption(new Option('--order <order>', 'Ascending or descending (default: asc)').choices(EVENT_SORT_ORDERS))
    .option(
      '--limit <n>',
      `Events per page, at most ${MAX_EVENTS_PAGE} (default: ${DEFAULT_EVENTS_PAGE}, or the maximum with --all)`,
      (text) => wholeNumber(text, 1, MAX_EVENTS_PAGE),
    )
    .option('--cursor <cursor>', CURSOR_HELP);
}

export function addExplain(command: Command, context: CommandContext): void {
  command.description(
    'List the events behind an amount, for admins of the account. With the same window and filters, the costs of all events add ' +
      'up to the amount. Below each event are the revisions that it replaced and that are still stored. All digits are shown.',
  );
  withOutput(withEvents(command), "Print the API's response as JSON; with --all, one response per line")
    .option(
      '--all',
      'Read all pages, not only the first. By cost, sort after the last page, so that each event is listed once',
    )
    .addHelpText('after', `${EXAMPLES}\n${API_SETTINGS_HELP}`)
    .action((flags: ExplainFlags) => withAccount(context, flags, (session) => explain(context, flags, session)));
}

async function explain(context: CommandContext, flags: ExplainFlags, session: AccountSession): Promise<void> {
  const { all = false, limit = all ? MAX_EVENTS_PAGE : undefined } = flags;
  const query = eventsQueryOf({ ...flags, limit }, context.now());
  const form = formOf(flags);
  if (all && form === 'json' && query.orderBy === 'cost') throw usageError(UNSORTED);
  const pages = readPages(context, session, query, all);
  let last: EventPage | undefined;
  let found = 0;
  if (form === 'table') {
    const events: EventPage['data'] = [];
    for await ({ page: last } of pages) events.push(...last.data);
    context.stdout.write(`${eventsText(context, events)}\n`);
    found = events.length;
  } else {
    await writeWhole(context, undefined, async (output) => {
      for await (const { page, text } of pages) {
        const csv = () => eventsCsv(page.data, form === 'excel' ? 'spreadsheet' : 'plain', last !== undefined);
        await output.appendFile(form === 'json' ? `${text}\n` : csv());
        last = page;
        found += page.data.length;
      }
    });
  }
  if (found === 0) await warnOfTypingErrors(context, session, flags.filter);
  if (all || form === 'json' || !last?.meta.hasMore) return;
  // Print the exact window, because a cursor is valid for one window only, and a window that ends now changes every second.
  const times = `--from ${query.startTime} --to ${query.endTime}`;
  const next = `for the next page, add ${times} --cursor ${last.meta.nextCursor}`;
  say(context, `There are more events. Use --all for all events, or ${next}`);
}

/** Yields the first page, or all pages, with the JSON that the API returned. */
async function* readPages(context: CommandContext, session: AccountSession, query: EventsQuery, all: boolean) {
  const { client, account } = session;
  let text = '';
  const onText = (sent: string) => {
    text = sent;
  };
  if (!all) {
    yield { page: await client.events(account, query, { onText }), text };
    return;
  }
  const progress = new PageProgress(context, 'event');
  const onPage = ({ data }: EventPage) => progress.page(data.length);
  try {
    for await (const page of allEvents(client, account, query, { onText, onPage })) yield { page, text };
  } finally {
    progress.end();
  }
}

function eventsText(context: CommandContext, data: EventPage['data']): string {
  if (data.length === 0) return 'No events in this window.';
  const rows = data.flatMap(({ eventId, history, ...newest }): Row[] => [
    { cells: cellsOf(newest, newest.timestamp, eventId) },
    ...history.map((replaced) => ({ cells: cellsOf(replaced, '', `  ${replacedText(replaced)}`) })),
  ]);
  const sum = [`${formatCount(data.length)} shown`, '', '', '', '', '', '', formatUsdExact(costOf(data))];
  return textTable(COLUMNS, [...rows, { cells: sum, isStrong: true }], layoutFor(context));
}

export function costOf(events: EventPage['data']): DecimalText {
  return sumDecimals(events.flatMap(({ voided, cost }) => (voided ? [] : [cost])));
}

function cellsOf(payload: EventRevision, time: string, event: string): string[] {
  const { workspace, resourceName, billingDimension, usage, cost, voided, price, priceBook } = payload;
  const unit = unitOf(billingDimension);
  return [
    time,
    event,
    ...[workspace, resourceName, billingDimension],
    formatUsage(usage, unit),
    // The price is unknown if the price book was never registered.
    price ? priceText(price, unit) : `? (book ${priceBook})`,
    voided ? 'void' : formatUsdExact(cost),
  ];
}

type ResourceTypesFlags = ApiFlags & WindowFlags & FilterFlags & OutputFlags;

export function addResourceTypes(command: Command, context: CommandContext): void {
  command
    .description('List the resource types with at least one event in a time window.')
    .addHelpText('after', API_SETTINGS_HELP)
    .action((flags: ResourceTypesFlags) => listResourceTypes(context, flags));
  withOutput(withFilters(withWindow(withApiFlags(command))));
}

async function listResourceTypes(context: CommandContext, flags: ResourceTypesFlags): Promise<void> {
  const query = { ...windowOf(flags, context.now()).sent, ...flags.filter };
  await withAccount(context, flags, async (session) => {
    const types = await session.client.resourceTypes(session.account, query);
    const text = types.length === 0 ? 'No usage in this window.' : types.join('\n');
    printResult(context, flags, types, text, types, ['value']);
    if (types.length === 0) await warnOfTypingErrors(context, session, flags.filter);
  });
}
