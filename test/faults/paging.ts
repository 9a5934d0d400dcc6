/** The query process dies in the middle of paging. The pages go on with the next process, by the same cursor. */
import { z } from 'zod';
import { eventByEvent } from './compare.js';
import type { Injection, Run } from './injections.js';
import { holdsWithin, pause } from './waiting.js';

const ENOUGH_WITHIN_MS = 240_000;
const GROUPS_A_PAGE = 25;
const LEAST_PAGES = 4;
const RETRY_MS = 100;

export const queryKilled: Injection = async (run) => {
  const { fixture, random, signal, complain } = run;
  const isLong = async () => metaOf(await readPage(run, '', GROUPS_A_PAGE * LEAST_PAGES)).hasMore;
  if (!(await holdsWithin(ENOUGH_WITHIN_MS, signal, isLong))) complain('there were not enough groups for pages');
  const killAfter = new Set(Array.from({ length: random.integer(1, 3) }, () => random.integer(1, LEAST_PAGES - 1)));
  const pages: string[] = [];
  for (let cursor = ''; ; ) {
    const text = await readPage(run, cursor, GROUPS_A_PAGE, pages.length === 1);
    pages.push(text);
    if (text === EXPIRED) {
      pages.length = 0;
      cursor = '';
      continue;
    }
    const { hasMore, nextCursor } = metaOf(text);
    if (!hasMore) break;
    cursor = nextCursor;
    if (!killAfter.has(pages.length)) continue;
    await fixture.query.kill();
    await fixture.startQuery();
  }
  for (const fault of faultsOf(pages)) complain(fault);
};

const pageSchema = z.object({ meta: z.object({ hasMore: z.boolean(), nextCursor: z.string() }) });

function metaOf(text: string) {
  return pageSchema.parse(JSON.parse(text)).meta;
}

/** In place of a page. */
const EXPIRED = 'cursor_expired';

/**
 * Tries again while a server is away.
 * @param mayExpire until the second page is there, a revision or a late event may end the pages, as any client can see
 * @throws AbortError, or Error with an answer that is no outage
 */
async function readPage(run: Run, cursor: string, limit: number, mayExpire = false): Promise<string> {
  const { asker, stream, signal } = run;
  const query = new URLSearchParams({ ...eventByEvent(stream.window), limit: String(limit), cursor });
  for (;;) {
    const { url, key } = asker();
    const headers = { authorization: `Bearer ${key}` };
    // Undefined when nobody listens.
    const answer = await fetch(`${url}/v0/accounts/${stream.accountId}/metrics?${query}`, { headers, signal })
      .then(async (response) => ({ status: response.status, text: await response.text() }))
      .catch(() => signal.throwIfAborted());
    if (answer?.status === 200) return answer.text;
    if (mayExpire && answer?.status === 400 && answer.text.includes(`"error":"${EXPIRED}"`)) return EXPIRED;
    if (answer && answer.status !== 503) throw new Error(`a page was ${answer.status}: ${answer.text}`);
    await pause(RETRY_MS, signal);
  }
}

/** Every group once, the same total on every page, and all costs together are the total. */
function faultsOf(pages: readonly string[]): string[] {
  const totals = new Set(pages.map((page) => /"totalCost":([\d.]+)/.exec(page)?.[1] ?? 'none'));
  if (totals.size !== 1) return [`the pages have ${totals.size} totals: ${[...totals].join(', ')}`];
  const group = /"resourceUuid":"([^"]+)","billingDimension":"([a-z_]+)","summary":\{"cost":([\d.]+)/g;
  const groups = pages.flatMap((page) => [...page.matchAll(group)]);
  const twice = groups.length - new Set(groups.map(([, mark, dimension]) => `${mark} ${dimension}`)).size;
  const sum = groups.reduce((total, [, , , cost = '']) => total + scaled(cost), 0n);
  const [total = ''] = totals;
  return [
    ...(twice > 0 ? [`the pages showed ${twice} groups twice`] : []),
    ...(sum === scaled(total) ? [] : [`the groups of all pages add up to ${sum}, and the total is ${total}`]),
  ];
}

/** USD × 10^12 */
function scaled(text: string): bigint {
  const [whole = '', fraction = ''] = text.split('.');
  return BigInt(whole + fraction.padEnd(12, '0'));
}
