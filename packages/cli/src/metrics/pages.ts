/** What the command reads of the API: the pages of an answer, the time before, and whether the caller sees workspaces. */
import { type DecimalText, enrichedDimensions, groupKey } from '@meterline/catalog/plain';
import { ALL_ACCOUNTS, type MeterlineClient, type MetricsAnswer, type MetricsEntry } from '@meterline/client';
import { z } from 'zod';
import type { CommandContext } from '../command.js';
import { PageProgress } from '../output/progress.js';
import type { Query } from './query.js';
import type { Before } from './report.js';

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

/** @param onRestart forgets the pages so far, which come again */
export function readPages(request: Request, onRestart: () => void | Promise<void>): AsyncGenerator<MetricsAnswer> {
  const { client, account, query, signal } = request;
  return following(
    request,
    onRestart,
    ({ data }) => data.length,
    (restarted) => client.metricsPages(account, query.sent, { signal, onRestart: restarted }),
  );
}

const pageOfGroups = z.object({ data: z.array(z.unknown()) });

/** The same as the API wrote them. */
export function readTexts(request: Request, onRestart: () => void | Promise<void>): AsyncGenerator<string> {
  const { client, account, query, signal } = request;
  const groupsIn = (text: string) => pageOfGroups.parse(JSON.parse(text)).data.length;
  return following(request, onRestart, groupsIn, (restarted) =>
    client.metricsTexts(account, query.sent, { signal, onRestart: restarted }),
  );
}

/** Says how far the reading of all pages has come; one page is not worth a word. */
async function* following<Page>(
  { context, all, isWatched }: Request,
  onRestart: () => void | Promise<void>,
  groupsIn: (page: Page) => number,
  open: (restarted: () => void | Promise<void>) => AsyncGenerator<Page>,
): AsyncGenerator<Page> {
  const progress = all && !isWatched ? new PageProgress(context, 'group') : undefined;
  const pages = open(() => {
    progress?.restart();
    return onRestart();
  });
  for await (const page of pages) {
    progress?.page(groupsIn(page));
    yield page;
    if (!all) return;
  }
  progress?.end();
}

/** The groups of the pages, and the last page; its summary is of the whole window, as that of every page. */
export async function readEntries(request: Request): Promise<{ entries: MetricsEntry[]; last: MetricsAnswer }> {
  const entries: MetricsEntry[] = [];
  let last: MetricsAnswer | undefined;
  for await (const page of readPages(request, () => void entries.splice(0))) {
    entries.push(...page.data);
    last = page;
  }
  if (!last) throw new Error('an answer has at least one page');
  return { entries, last };
}

/**
 * What the groups cost in the time before. Reads its pages until none of the groups is missing.
 * @param wanted undefined: all groups
 * @returns undefined when nothing is compared
 */
export async function timeBefore(request: Request, wanted?: readonly MetricsEntry[]): Promise<Before | undefined> {
  const { groupBy, compared } = request.query;
  if (!compared) return undefined;
  const costs = new Map<string, DecimalText>();
  const keys = wanted?.map((entry) => groupKey(entry, groupBy));
  const before = { ...request, query: { ...request.query, sent: compared.sent }, all: true, isWatched: true };
  let answer: MetricsAnswer | undefined;
  for await (const page of readPages(before, () => costs.clear())) {
    answer = page;
    for (const entry of page.data) costs.set(groupKey(entry, groupBy), entry.summary.cost);
    if (keys?.every((key) => costs.has(key))) break;
  }
  return answer && { answer, distance: compared.distance, costs };
}

/**
 * Whether groups have no workspace because the caller is a member. Where none has one, only the caller's role tells this from
 * groups that are of several workspaces each.
 */
export async function isWorkspaceHidden(request: Request, entries: readonly MetricsEntry[]): Promise<boolean> {
  const { client, account, query, signal } = request;
  const isEnriched = enrichedDimensions(query.groupBy).includes('workspace');
  if (!isEnriched || entries.some(({ workspace }) => workspace !== undefined)) return false;
  const isAsked = (id: string) => account === ALL_ACCOUNTS || id === account;
  return (await client.accounts({ signal })).some(({ id, role }) => isAsked(id) && role !== 'admin');
}
