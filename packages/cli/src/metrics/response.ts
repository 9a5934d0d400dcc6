/**
 * Reads a metrics query page by page, and prints the result as a table, JSON or CSV. JSON and CSV are printed when they are complete, so
 * that reading can restart if the response changes.
 */
import {
  type CsvForm,
  enrichedDimensions,
  groupKey,
  groupsCsvLines,
  groupWithoutUsage,
  seriesCsvLines,
} from '@meterline/catalog';
import {
  ALL_ACCOUNTS,
  type MeterlineClient,
  type MetricsEntry,
  type MetricsResponse,
  queriesOfGroups,
} from '@meterline/client';
import { type CommandContext, formatCount, say } from '../command.js';
import { layoutFor } from '../output/table.js';
import { PageProgress, writeWhole } from '../output/whole-output.js';
import type { Query } from './query.js';
import { type Before, reportText } from './report.js';

export interface Request {
  readonly context: CommandContext;
  readonly client: MeterlineClient;
  readonly account: string;
  readonly query: Query;
  readonly all: boolean;
  readonly signal: AbortSignal | undefined;
  readonly onPage: (page: MetricsResponse) => void;
}

/** Yields pages with the JSON that the API returned. If the data changes, starts over: `onRestart` must discard all pages so far. */
async function* readPages(request: Request, onRestart: () => void | Promise<void>) {
  const { context, client, account, query, all, signal } = request;
  const progress = all ? new PageProgress(context, 'group') : undefined;
  const restarted = () => {
    progress?.restart();
    return onRestart();
  };
  try {
    let text = '';
    const onText = (sent: string) => {
      text = sent;
    };
    for await (const page of client.metricsPages(account, query.sent, { signal, onRestart: restarted, onText })) {
      progress?.page(page.data.length);
      request.onPage(page);
      yield { page, text };
      if (!all) return;
    }
  } finally {
    progress?.end();
  }
}

/** Reads the cost of groups (default: all) in the previous period. Returns undefined without --compare. */
export async function previousPeriod(
  { client, account, query: { groupBy, compared }, signal }: Pick<Request, 'client' | 'account' | 'query' | 'signal'>,
  entries?: readonly MetricsEntry[],
): Promise<Before | undefined> {
  if (!compared) return undefined;
  // Only the totals of the previous period are shown, so its time series may have the coarsest resolution.
  const all = { ...compared.sent, limit: undefined, resolution: 'monthly' } as const;
  const response = await client.metrics(account, { ...all, groupBy: [] }, { signal });
  const previous = new Map<string, MetricsEntry>();
  for (const sent of entries ? queriesOfGroups(all, entries) : [all]) {
    const { data } = await client.allMetrics(account, sent, { signal });
    for (const entry of data) previous.set(groupKey(entry, groupBy), entry);
  }
  return { response, distance: compared.distance, entries: previous };
}

/**
 * Returns whether the API hides workspaces because the caller is a member. Missing workspaces alone do not prove it: the API also omits the
 * workspace of a group that has events of several workspaces. So this function checks the caller's role.
 */
async function isWorkspaceHidden(request: Request, entries: readonly MetricsEntry[]): Promise<boolean> {
  const { client, account, query, signal } = request;
  const isEnriched = enrichedDimensions(query.groupBy).includes('workspace');
  if (!isEnriched || entries.some(({ workspace }) => workspace !== undefined)) return false;
  const isRequested = (id: string) => account === ALL_ACCOUNTS || id === account;
  return (await client.accounts({ signal })).some(({ id, role }) => isRequested(id) && role === 'member');
}

/** Prints the API's responses, one per line. The responses for the previous period come last. */
export async function printJson(request: Request): Promise<void> {
  const { context, query } = request;
  await writeWhole(context, undefined, async (output) => {
    for (const sent of [query.sent, ...(query.compared ? [query.compared.sent] : [])]) {
      const { size } = output;
      const pages = readPages({ ...request, query: { ...query, sent } }, () => output.truncate(size));
      for await (const { text } of pages) await output.appendFile(`${text}\n`);
    }
  });
}

/** Prints CSV. @param isSeries prints a line per group and bucket instead of a line per group */
export async function printCsv(request: Request, isSeries: boolean, form: CsvForm): Promise<void> {
  const { context, query, all } = request;
  const { groupBy } = query;
  await writeWhole(context, undefined, async (output) => {
    let before = all ? await previousPeriod(request) : undefined;
    const costBefore =
      query.compared && ((entry: MetricsEntry) => before?.entries.get(groupKey(entry, groupBy))?.summary.cost);
    let last: MetricsResponse | undefined;
    const written = new Set<string>();
    const restart = () => {
      last = undefined;
      written.clear();
      return output.truncate();
    };
    for await (const { page } of readPages(request, restart)) {
      if (!all) before = await previousPeriod(request, page.data);
      const [heading, ...lines] = isSeries
        ? seriesCsvLines(page.data, groupBy, page.resolution, form)
        : groupsCsvLines(page, page.data, groupBy, costBefore, form);
      await output.appendFile((last ? lines : [heading, ...lines]).join(''));
      for (const entry of page.data) written.add(groupKey(entry, groupBy));
      last = page;
    }
    if (last && !all) sayIfThereIsMore(context, last);
    if (!last || !all || isSeries) return;
    const gone = [...(before?.entries ?? [])].flatMap(([key, group]) =>
      written.has(key) ? [] : [groupWithoutUsage(group)],
    );
    const [, ...lines] = groupsCsvLines(last, gone, groupBy, costBefore, form);
    await output.appendFile(lines.join(''));
  });
}

export async function printTable(request: Request, isExact: boolean): Promise<void> {
  const { context, account, query, all } = request;
  const pages: MetricsResponse[] = [];
  for await (const { page } of readPages(request, () => void pages.splice(0))) pages.push(page);
  const last = pages.at(-1);
  if (!last) throw new Error('the API returned no page');
  const entries = pages.flatMap(({ data }) => data);
  const before = await previousPeriod(request, all ? undefined : entries);
  const hidesWorkspace = await isWorkspaceHidden(request, entries);
  const report = { account, groupBy: query.groupBy, hidesWorkspace, response: last, entries, before };
  context.stdout.write(`${reportText(report, { ...layoutFor(context), isExact })}\n`);
  if (!all) sayIfThereIsMore(context, last);
}

function sayIfThereIsMore(context: CommandContext, { data, meta }: MetricsResponse): void {
  if (meta.hasMore) say(context, `Showing the first ${formatCount(data.length)} groups; use --all for all groups.`);
}
