/**
 * What `metrics` reads of the API, and the forms in which it is printed. JSON and CSV appear whole or not at all, so their pages can be
 * read again.
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
  /** Every page, not one. */
  readonly all: boolean;
  /** Sent again and again: no word on how far it has come. */
  readonly isWatched: boolean;
  readonly signal: AbortSignal | undefined;
}

/**
 * The pages, with the text that the API sent. Says how far the reading of all pages has come; one page is not worth a word.
 * @param onRestart forgets the pages so far, which come again
 */
async function* readPages(request: Request, onRestart: () => void | Promise<void>) {
  const { context, client, account, query, all, isWatched, signal } = request;
  const progress = all && !isWatched ? new PageProgress(context, 'group') : undefined;
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
      yield { page, text };
      if (!all) return;
    }
  } finally {
    progress?.end();
  }
}

/**
 * What groups cost in the previous period, without their series.
 * @param wanted undefined: all groups
 * @returns undefined when nothing is compared
 */
export async function previousPeriod(
  { client, account, query: { groupBy, compared }, signal }: Pick<Request, 'client' | 'account' | 'query' | 'signal'>,
  wanted?: readonly MetricsEntry[],
): Promise<Before | undefined> {
  if (!compared) return undefined;
  // The coarsest resolution, because the series are not shown.
  const all = { ...compared.sent, limit: undefined, resolution: 'monthly' } as const;
  const response = await client.metrics(account, { ...all, groupBy: [] }, { signal });
  const entries = new Map<string, MetricsEntry>();
  for (const sent of wanted ? queriesOfGroups(all, wanted) : [all]) {
    const { data } = await client.allMetrics(account, sent, { signal });
    for (const entry of data) entries.set(groupKey(entry, groupBy), entry);
  }
  return { response, distance: compared.distance, entries };
}

/**
 * Whether groups have no workspace because the caller is a member. Where none has one, only the caller's role tells this from
 * groups that are of several workspaces each.
 */
async function isWorkspaceHidden(request: Request, entries: readonly MetricsEntry[]): Promise<boolean> {
  const { client, account, query, signal } = request;
  const isEnriched = enrichedDimensions(query.groupBy).includes('workspace');
  if (!isEnriched || entries.some(({ workspace }) => workspace !== undefined)) return false;
  const isRequested = (id: string) => account === ALL_ACCOUNTS || id === account;
  return (await client.accounts({ signal })).some(({ id, role }) => isRequested(id) && role === 'member');
}

/** One response a line, as the API wrote it; those of the time before come last. */
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

/** @param isSeries a line for each bucket of each group */
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
  const { text, last } = await readTable(request, isExact);
  request.context.stdout.write(`${text}\n`);
  if (!request.all) sayIfThereIsMore(request.context, last);
}

/** The table as text, and the last page that was read; its summary is of the whole window, as that of every page. */
export async function readTable(request: Request, isExact: boolean): Promise<{ text: string; last: MetricsResponse }> {
  const { context, account, query } = request;
  const pages: MetricsResponse[] = [];
  for await (const { page } of readPages(request, () => void pages.splice(0))) pages.push(page);
  const last = pages.at(-1);
  if (!last) throw new Error('a response has at least one page');
  const entries = pages.flatMap(({ data }) => data);
  const before = await previousPeriod(request, request.all ? undefined : entries);
  const hidesWorkspace = await isWorkspaceHidden(request, entries);
  const report = { account, groupBy: query.groupBy, hidesWorkspace, response: last, entries, before };
  return { text: reportText(report, { ...layoutFor(context), isExact }), last };
}

function sayIfThereIsMore(context: CommandContext, { data, meta }: MetricsResponse): void {
  if (meta.hasMore) say(context, `These are the first ${formatCount(data.length)} groups; --all reads every page.`);
}
