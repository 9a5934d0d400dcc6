/** The forms in which an answer is printed. What a form is made with is loaded only once the API has been asked. */
import type { MetricsAnswer, MetricsEntry } from '@meterline/client';
import { type CommandContext, formatCount, say } from '../command.js';
import { type Asked, answerPages, isWorkspaceHidden, textPages, timeBefore } from './ask.js';

/** One answer a line, as the API wrote it; those of the time before come last. */
export async function* jsonLines(asked: Asked): AsyncGenerator<string> {
  for await (const text of textPages(asked)) yield `${text}\n`;
  const { question } = asked;
  if (!question.compared) return;
  const before = { ...asked, question: { ...question, query: question.compared.query } };
  for await (const text of textPages(before)) yield `${text}\n`;
}

export async function printJson(asked: Asked): Promise<void> {
  for await (const line of jsonLines(asked)) asked.context.stdout.write(line);
}

export async function printCsv(asked: Asked, isSeries: boolean): Promise<void> {
  const { context, question, all } = asked;
  const before = (await timeBefore(asked))?.costs;
  const options = { groupBy: question.groupBy, isSeries, before };
  let isFirst = true;
  for await (const page of answerPages(asked)) {
    const { csvHeader, csvPage } = await import('./csv.js');
    // Not before the first answer: a call that fails prints nothing.
    context.stdout.write(isFirst ? csvHeader(options) + csvPage(page, options) : csvPage(page, options));
    isFirst = false;
    if (!all) sayIfThereIsMore(context, page);
  }
}

export async function printTable(asked: Asked, isExact: boolean): Promise<void> {
  const table = await tableOf(asked, isExact);
  if (!table) return;
  asked.context.stdout.write(`${table.text}\n`);
  if (!asked.all) sayIfThereIsMore(asked.context, table.last);
}

/** The table as text, of groups as many as were asked for. */
export async function tableText(asked: Asked, isExact: boolean): Promise<string> {
  return (await tableOf(asked, isExact))?.text ?? '';
}

/** `last` is the last page that was read; its summary is of the whole window, as that of every page. */
async function tableOf(asked: Asked, isExact: boolean): Promise<{ text: string; last: MetricsAnswer } | undefined> {
  const [{ entries, last }, { reportText }] = await Promise.all([readPages(asked), import('./report.js')]);
  if (!last) return undefined;
  const { context, account, question } = asked;
  const before = await timeBefore(asked, entries);
  const hidesWorkspace = await isWorkspaceHidden(asked, entries);
  const { layoutFor } = await import('../output/table.js');
  const report = { account, groupBy: question.groupBy, hidesWorkspace, answer: last, entries, before };
  return { text: reportText(report, { ...layoutFor(context), isExact }), last };
}

async function readPages(asked: Asked): Promise<{ entries: MetricsEntry[]; last: MetricsAnswer | undefined }> {
  const entries: MetricsEntry[] = [];
  const discard = () => {
    entries.length = 0;
  };
  let last: MetricsAnswer | undefined;
  for await (const page of answerPages(asked, discard)) {
    entries.push(...page.data);
    last = page;
  }
  return { entries, last };
}

function sayIfThereIsMore(context: CommandContext, { data, meta }: MetricsAnswer): void {
  if (meta.hasMore) say(context, `These are the first ${formatCount(data.length)} groups; --all reads every page.`);
}
