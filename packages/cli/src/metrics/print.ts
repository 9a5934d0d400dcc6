/** The forms in which an answer is printed. JSON and CSV appear whole or not at all, so their pages can be read again. */
import { csvHeading, csvRow, groupKey, groupsCsvColumns, seriesCsvColumns, ZERO } from '@meterline/catalog/plain';
import type { MetricsAnswer } from '@meterline/client';
import { type CommandContext, formatCount, say } from '../command.js';
import { layoutFor } from '../output/table.js';
import { type Draft, writeWhole } from '../output/whole-output.js';
import { isWorkspaceHidden, type Request, readEntries, readPages, readTexts, timeBefore } from './pages.js';
import { type Before, reportText } from './report.js';

/** One answer a line, as the API wrote it; those of the time before come last. */
export async function printJson(request: Request): Promise<void> {
  const { context, query } = request;
  await writeWhole(context, undefined, async (draft) => {
    for (const sent of [query.sent, ...(query.compared ? [query.compared.sent] : [])]) {
      const start = draft.length;
      const texts = readTexts({ ...request, query: { ...query, sent } }, () => draft.clear(start));
      for await (const text of texts) await draft.write(`${text}\n`);
    }
  });
}

/** @param isSeries a line for each bucket of each group */
export async function printCsv(request: Request, isSeries: boolean): Promise<void> {
  const { context, query, all } = request;
  const before = await timeBefore(request);
  const write = isSeries ? seriesLines : groupLines;
  await writeWhole(context, undefined, async (draft: Draft) => {
    let last: MetricsAnswer | undefined;
    for await (const page of readPages(request, () => draft.clear())) {
      const [heading, ...lines] = write(page, query.groupBy, before);
      await draft.write((draft.length === 0 ? [heading, ...lines] : lines).join(''));
      last = page;
    }
    if (last && !all) sayIfThereIsMore(context, last);
  });
}

type GroupBy = Request['query']['groupBy'];

function groupLines(answer: MetricsAnswer, groupBy: GroupBy, before: Before | undefined): string[] {
  const columns = groupsCsvColumns(groupBy, before !== undefined);
  const costBefore = (entry: MetricsAnswer['data'][number]) => before?.costs.get(groupKey(entry, groupBy)) ?? ZERO;
  const rows = answer.data.map((entry) => ({ answer, entry, amounts: entry.summary, before: costBefore(entry) }));
  return [csvHeading(columns), ...rows.map((row) => csvRow(columns, row))];
}

function seriesLines({ data, resolution }: MetricsAnswer, groupBy: GroupBy): string[] {
  const columns = seriesCsvColumns(groupBy);
  const rows = data.flatMap((entry) =>
    entry.timeseries.map((point) => ({ entry, amounts: point, timestamp: point.timestamp, resolution })),
  );
  return [csvHeading(columns), ...rows.map((row) => csvRow(columns, row))];
}

export async function printTable(request: Request, isExact: boolean): Promise<void> {
  const { text, last } = await readTable(request, isExact);
  request.context.stdout.write(`${text}\n`);
  if (!request.all) sayIfThereIsMore(request.context, last);
}

/** The table as text, and the last page that was read. */
export async function readTable(request: Request, isExact: boolean): Promise<{ text: string; last: MetricsAnswer }> {
  const { context, account, query } = request;
  const { entries, last } = await readEntries(request);
  const before = await timeBefore(request, entries);
  const hidesWorkspace = await isWorkspaceHidden(request, entries);
  const report = { account, groupBy: query.groupBy, hidesWorkspace, answer: last, entries, before };
  return { text: reportText(report, { ...layoutFor(context), isExact }), last };
}

function sayIfThereIsMore(context: CommandContext, { data, meta }: MetricsAnswer): void {
  if (meta.hasMore) say(context, `These are the first ${formatCount(data.length)} groups; --all reads every page.`);
}
