/** The `meterline explain` and `meterline resource-types` commands. */
import {
  DEFAULT_EVENTS_PAGE,
  type DecimalText,
  formatUsage,
  formatUsdExact,
  MAX_EVENTS_PAGE,
  priceText,
  replacedText,
  sumDecimals,
  unitOf,
} from '@meterline/catalog';
import type { EventPage, EventRevision } from '@meterline/client';
import type { Command } from 'commander';
import { type CommandContext, formatCount, say } from '../../command.js';
import { type AccountSession, withAccount } from '../../connections/api.js';
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
import { API_SETTINGS_HELP, type ApiFlags } from '../../settings.js';

type ExplainFlags = ApiFlags & EventsFlags & OutputFlags;

const EXAMPLES = `
Examples:
  meterline explain --from 2026-11-02T10:00:00Z --to 2026-11-02T11:00:00Z --filter resourceName=crawler
  meterline explain --since 1h --include-voided --json | jq '.data[] | select(.revision > 0)'`;

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
    .option('--limit <n>', `Events per page, at most ${MAX_EVENTS_PAGE} (default: ${DEFAULT_EVENTS_PAGE})`, (text) =>
      wholeNumber(text, 1, MAX_EVENTS_PAGE),
    )
    .option('--cursor <cursor>', CURSOR_HELP);
}

export function addExplain(command: Command, context: CommandContext): void {
  command.description(
    'List the events behind an amount, for admins of the account. With the same window and filters, the costs of all events add ' +
      'up to the amount. Below each event are the revisions that it replaced and that are still stored. All digits are shown.',
  );
  withOutput(withEvents(command), "Print the API's response as JSON")
    .addHelpText('after', `${EXAMPLES}\n${API_SETTINGS_HELP}`)
    .action((flags: ExplainFlags) => withAccount(context, flags, (session) => explain(context, flags, session)));
}

async function explain(
  context: CommandContext,
  flags: ExplainFlags,
  { client, account }: AccountSession,
): Promise<void> {
  const query = eventsQueryOf(flags, context.now());
  const isJson = formOf(flags) === 'json';
  const onText = isJson ? (text: string) => void context.stdout.write(`${text}\n`) : undefined;
  const page = await client.events(account, query, { onText });
  if (isJson) return;
  printResult(context, flags, page, pageText(context, page), page.data);
  if (!page.meta.hasMore) return;
  // Print the exact window, because a cursor is valid for one window only, and a window that ends now changes every second.
  const times = `--from ${query.startTime} --to ${query.endTime}`;
  say(context, `There are more events. For the next page, add ${times} --cursor ${page.meta.nextCursor}`);
}

function pageText(context: CommandContext, { data }: EventPage): string {
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
  const types = await withAccount(context, flags, ({ client, account }) => client.resourceTypes(account, query));
  const text = types.length === 0 ? 'No usage in this window.' : types.join('\n');
  printResult(context, flags, types, text, types, ['value']);
}
