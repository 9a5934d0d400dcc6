/** What the command asks the API to answer a question: its pages, the time before, and whether the caller sees workspaces. */
import { type DecimalText, enrichedDimensions, groupKey, readExactJson } from '@meterline/catalog/questions';
import type { MeterlineClient, MetricsAnswer, MetricsEntry } from '@meterline/client';
import { type CommandContext, say } from '../command.js';
import { PageProgress } from './page-progress.js';
import type { Question } from './query.js';
import type { Before } from './report.js';
import { walk } from './walk.js';

export interface Asked {
  readonly context: CommandContext;
  readonly client: MeterlineClient;
  readonly account: string;
  readonly question: Question;
  /** Every page, not one. */
  readonly all: boolean;
  /** Asked again and again: no word on how far it has come. */
  readonly isWatched: boolean;
  readonly signal: AbortSignal | undefined;
}

/** @param discard forgets the pages so far, when the walk starts again; left out where they are printed already */
export async function* answerPages(asked: Asked, discard?: () => void): AsyncGenerator<MetricsAnswer> {
  const { client, account, question, all, signal } = asked;
  const { query } = question;
  const progress = progressOf(asked);
  const read = async (cursor: string | undefined) => {
    const page = await client.metrics(account, { ...query, cursor }, { signal });
    progress.page(page.data.length);
    return { page, nextCursor: page.meta.nextCursor };
  };
  yield* walk({ cursor: query.cursor, all, read, discard, onRestart: () => restarted(asked, progress) });
  progress.end();
}

/** The same as the API wrote them. */
export async function* textPages(asked: Asked): AsyncGenerator<string> {
  const { client, account, question, all, signal } = asked;
  const { query } = question;
  const progress = progressOf(asked);
  const read = async (cursor: string | undefined) => {
    const page = await client.metricsText(account, { ...query, cursor }, { signal });
    if (!all) return { page, nextCursor: '' };
    // Only here: it brings zod, and before the first request that would be most of the wait.
    const { metricsAnswerSchema } = await import('@meterline/catalog/answers');
    const { data, meta } = metricsAnswerSchema.parse(readExactJson(page));
    progress.page(data.length);
    return { page, nextCursor: meta.nextCursor };
  };
  yield* walk({ cursor: query.cursor, all, read, onRestart: () => restarted(asked, progress) });
  progress.end();
}

/** Of a walk over all pages; one page is not worth a word. */
function progressOf({ context, all, isWatched }: Asked): Pick<PageProgress, 'page' | 'restart' | 'end'> {
  const silence = () => undefined;
  return all && !isWatched ? new PageProgress(context) : { page: silence, restart: silence, end: silence };
}

function restarted({ context }: Asked, progress: Pick<PageProgress, 'restart'>): void {
  progress.restart();
  say(context, 'The answer changed while its pages were read; reading it again.');
}

/**
 * What the groups cost in the time before. Reads its pages until none of the groups is missing.
 * @param wanted undefined: all groups
 * @returns undefined when the question is not compared
 */
export async function timeBefore(asked: Asked, wanted?: readonly MetricsEntry[]): Promise<Before | undefined> {
  const { groupBy, compared } = asked.question;
  if (!compared) return undefined;
  const costs = new Map<string, DecimalText>();
  const missing = wanted && new Set(wanted.map((entry) => groupKey(entry, groupBy)));
  const question = { ...asked.question, query: compared.query };
  let answer: MetricsAnswer | undefined;
  for await (const page of answerPages({ ...asked, question, all: true, isWatched: true }, () => costs.clear())) {
    answer = page;
    for (const entry of page.data) {
      const key = groupKey(entry, groupBy);
      costs.set(key, entry.summary.cost);
      missing?.delete(key);
    }
    if (missing?.size === 0) break;
  }
  return answer && { answer, distance: compared.distance, costs };
}

/**
 * Whether groups have no workspace because the caller is a member. Where none has one, only the caller's role tells this from
 * groups that are of several workspaces each.
 */
export async function isWorkspaceHidden(asked: Asked, entries: readonly MetricsEntry[]): Promise<boolean> {
  const { client, account, question, signal } = asked;
  const isEnriched = enrichedDimensions(question.groupBy).includes('workspace');
  if (!isEnriched || entries.some(({ workspace }) => workspace !== undefined)) return false;
  return (await client.accounts({ signal })).some(({ id, role }) => id === account && role !== 'admin');
}
