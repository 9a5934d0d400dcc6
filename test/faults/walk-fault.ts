/** The query process dies in the middle of a walk through pages. The walk goes on with the next one, by the same cursor. */
import { z } from 'zod';
import { type Asker, eventByEvent } from './accepted-events.js';
import type { Fault, Scene } from './fault.js';
import { holdsWithin, pause } from './waiting.js';

const LONG_ENOUGH_WITHIN_MS = 240_000;
const GROUPS_A_PAGE = 25;
const LEAST_PAGES = 4;
const RETRY_MS = 100;
/** USD × 10^12 */
const COST_DECIMALS = 12;

export const queryKilled: Fault = {
  name: 'query-killed',
  injects: '`kill -9` of the query process in the middle of a walk through pages, which goes on with the same cursor',
  workers: 2,
  proxied: 'nothing',
  weight: 10,
  strike: async (scene) => {
    const { site, random, signal, complain } = scene;
    const isLong = () => isLongWalk(scene);
    if (!(await holdsWithin(LONG_ENOUGH_WITHIN_MS, signal, isLong)))
      complain('there were not enough groups for a walk');
    const killAfter = new Set(Array.from({ length: random.integer(1, 3) }, () => random.integer(1, LEAST_PAGES - 1)));
    const pages = await walk(scene, async (page) => {
      if (!killAfter.has(page)) return;
      await site.query.kill();
      await site.startQuery();
    });
    for (const fault of faultsOf(pages)) complain(fault);
  },
};

const pageSchema = z.object({ meta: z.object({ hasMore: z.boolean(), nextCursor: z.string() }) });

async function isLongWalk(scene: Scene): Promise<boolean> {
  const first = await readPage(scene, '', GROUPS_A_PAGE * LEAST_PAGES);
  return pageSchema.parse(JSON.parse(first)).meta.hasMore;
}

/**
 * The texts of all pages. Until the second one is there, a revision or a late event may end the walk, as any client can see:
 * then it begins again. After that nothing may.
 * @param between called after each page with its number, from 1 on
 */
async function walk(scene: Scene, between: (page: number) => Promise<void>): Promise<string[]> {
  let pages: string[] = [];
  for (let cursor = ''; ; ) {
    const text = await readPage(scene, cursor, GROUPS_A_PAGE, pages.length === 1);
    if (text === EXPIRED) {
      pages = [];
      cursor = '';
      continue;
    }
    pages.push(text);
    const { meta } = pageSchema.parse(JSON.parse(text));
    if (!meta.hasMore) return pages;
    cursor = meta.nextCursor;
    await between(pages.length);
  }
}

/** In place of a page. */
const EXPIRED = 'cursor_expired';

/**
 * Tries again while a server is away.
 * @returns EXPIRED where the page may say so and does
 * @throws AbortError, or Error with an answer that is no outage
 */
async function readPage(
  { asker, stream, signal }: Scene,
  cursor: string,
  limit: number,
  mayExpire = false,
): Promise<string> {
  const query = { ...eventByEvent(stream.window), limit: String(limit), cursor };
  for (;;) {
    const answer = await ask(asker(), `/v0/accounts/${stream.accountId}/metrics?${new URLSearchParams(query)}`, signal);
    if (answer?.status === 200) return answer.text;
    if (mayExpire && answer?.status === 400 && answer.text.includes(`"error":"${EXPIRED}"`)) return EXPIRED;
    if (answer && answer.status !== 503) throw new Error(`a page of a walk was ${answer.status}: ${answer.text}`);
    await pause(RETRY_MS, signal);
  }
}

/** Undefined when nobody listens. */
async function ask({ url, key }: Asker, path: string, signal: AbortSignal) {
  try {
    const response = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${key}` }, signal });
    return { status: response.status, text: await response.text() };
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}

const TOTAL = /"totalCost":([\d.]+)/;
const GROUP = /"resourceUuid":"([^"]+)","billingDimension":"([a-z_]+)","summary":\{"cost":([\d.]+)/g;

/** Every group once, the same total on every page, and all costs together are the total. */
export function faultsOf(pages: readonly string[]): string[] {
  const totals = new Set(pages.map((page) => TOTAL.exec(page)?.[1] ?? 'none'));
  if (totals.size !== 1) return [`the pages of a walk have ${totals.size} totals: ${[...totals].join(', ')}`];
  const groups = pages.flatMap((page) => [...page.matchAll(GROUP)]);
  const seen = new Set(groups.map(([, mark, dimension]) => `${mark} ${dimension}`));
  const faults = seen.size < groups.length ? [`a walk showed ${groups.length - seen.size} groups twice`] : [];
  const sum = groups.reduce((total, [, , , cost = '']) => total + scaled(cost), 0n);
  const [total = ''] = totals;
  return sum === scaled(total)
    ? faults
    : [...faults, `the groups of a walk add up to ${sum}, and the total is ${total}`];
}

function scaled(text: string): bigint {
  const [whole = '', fraction = ''] = text.split('.');
  return BigInt(whole + fraction.padEnd(COST_DECIMALS, '0'));
}
