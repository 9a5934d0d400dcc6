import { metricsAnswerSchema, readExactJson } from '@meterline/catalog/api';
import type { MeterlineClient, MetricsAnswer, MetricsQuery } from '@meterline/client';
import type { Command } from 'commander';
import { type CommandContext, formatCount, say, usageError } from '../command.js';
import { withAccount } from '../connections/api.js';
import { withApiFlags } from '../flags.js';
import { csvHeader, csvPage } from '../metrics/csv.js';
import { type QueryFlags, queryOf, withQuery } from '../metrics/query.js';
import { reportText } from '../metrics/report.js';
import { layoutFor } from '../output/table.js';
import { API_SETTINGS_HELP, type ApiFlags } from '../settings/api-settings.js';

interface MetricsFlags extends ApiFlags, QueryFlags {
  readonly all?: boolean;
  readonly json?: boolean;
  readonly csv?: boolean;
  readonly series?: boolean;
  readonly exact?: boolean;
}

const EXAMPLES = `
Examples:
  meterline metrics --since 7d --group-by resource_type,workspace
  meterline metrics --from 2026-10-01 --to 2026-11-01 --group-by billing_dimension --exact
  meterline metrics --group-by resource_name --all --csv > resources.csv
  meterline metrics --since 24h --json | jq .summary.totalCost`;

/** Pages between two lines of progress where there is no terminal. */
const PAGES_PER_LINE = 10;

export function addCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('metrics')
    .description(
      'Shows what an account used and what it cost, the most expensive group first. Costs are in USD; all times are UTC.\n' +
        'Amounts in the table are rounded for reading; --exact, --json and --csv give every digit.',
    );
  withQuery(withApiFlags(command))
    .option('--all', 'read every page, not only the first')
    .option('--json', "print the API's answer as it is; with --all one answer a line")
    .option('--csv', 'print CSV, safe to open in a spreadsheet')
    .option('--series', 'with --csv: a line for each bucket of each group')
    .option('--exact', 'every digit of every amount in the table')
    .addHelpText('after', `${EXAMPLES}\n${API_SETTINGS_HELP}`)
    .action((flags: MetricsFlags) => runMetrics(context, flags));
}

async function runMetrics(context: CommandContext, flags: MetricsFlags): Promise<void> {
  if (flags.json && flags.csv) throw usageError('give --json or --csv, not both');
  if (flags.series && !flags.csv) throw usageError('--series is for --csv; --json always has the series');
  const query = queryOf(flags, context.now());
  await withAccount(context, flags, async (client, account) => {
    if (flags.json) return printJson(context, client, account, query, flags);
    if (flags.csv) return printCsv(context, client, account, query, flags);
    return printTable(context, client, account, query, flags);
  });
}

async function printJson(
  context: CommandContext,
  client: MeterlineClient,
  account: string,
  query: MetricsQuery,
  { all }: MetricsFlags,
): Promise<void> {
  const progress = new PageProgress(context);
  let { cursor } = query;
  do {
    const text = await client.metricsText(account, { ...query, cursor });
    context.stdout.write(`${text}\n`);
    if (!all) break;
    const { data, meta } = metricsAnswerSchema.parse(readExactJson(text));
    progress.page(data.length);
    cursor = meta.nextCursor;
  } while (cursor !== '');
  progress.end();
}

async function printCsv(
  context: CommandContext,
  client: MeterlineClient,
  account: string,
  query: MetricsQuery,
  { all, series = false }: MetricsFlags,
): Promise<void> {
  const options = { groupBy: query.groupBy ?? [], isSeries: series };
  const progress = new PageProgress(context);
  let isFirst = true;
  for await (const page of pages(client, account, query, all)) {
    // Not before the first answer: a call that fails prints nothing.
    context.stdout.write(isFirst ? csvHeader(options) + csvPage(page, options) : csvPage(page, options));
    isFirst = false;
    if (all) progress.page(page.data.length);
    else sayIfThereIsMore(context, page);
  }
  progress.end();
}

async function printTable(
  context: CommandContext,
  client: MeterlineClient,
  account: string,
  query: MetricsQuery,
  { all, exact = false }: MetricsFlags,
): Promise<void> {
  const progress = new PageProgress(context);
  const entries: MetricsAnswer['data'] = [];
  let last: MetricsAnswer | undefined;
  for await (const page of pages(client, account, query, all)) {
    entries.push(...page.data);
    last = page;
    if (all) progress.page(page.data.length);
  }
  progress.end();
  if (!last) return;
  const layout = { ...layoutFor(context), isExact: exact };
  context.stdout.write(`${reportText({ account, groupBy: query.groupBy ?? [], answer: last, entries }, layout)}\n`);
  if (!all) sayIfThereIsMore(context, last);
}

function pages(client: MeterlineClient, account: string, query: MetricsQuery, all: boolean | undefined) {
  return all ? client.metricsPages(account, query) : onePage(client, account, query);
}

async function* onePage(client: MeterlineClient, account: string, query: MetricsQuery): AsyncGenerator<MetricsAnswer> {
  yield await client.metrics(account, query);
}

function sayIfThereIsMore(context: CommandContext, { data, meta }: MetricsAnswer): void {
  if (meta.hasMore) say(context, `These are the first ${formatCount(data.length)} groups; --all reads every page.`);
}

/** How far --all has come: one line that is written over on a terminal, a line now and then elsewhere. */
class PageProgress {
  readonly #context: CommandContext;
  #pages = 0;
  #groups = 0;

  constructor(context: CommandContext) {
    this.#context = context;
  }

  page(groups: number): void {
    this.#pages += 1;
    this.#groups += groups;
    const { stderr } = this.#context;
    if (stderr.isTTY) stderr.write(`\r${this.#text()}`);
    else if (this.#pages % PAGES_PER_LINE === 0) say(this.#context, this.#text());
  }

  end(): void {
    const { stderr } = this.#context;
    if (this.#pages === 0) return;
    if (stderr.isTTY) stderr.write('\r\u001b[K');
    else say(this.#context, this.#text());
  }

  #text(): string {
    return `Read ${formatCount(this.#groups)} groups on ${formatCount(this.#pages)} page${this.#pages === 1 ? '' : 's'}.`;
  }
}
