/** Compares what is stored and answered with what was sent, and names the lost and the doubled events. */
import type { UsageEventInput } from '@meterline/catalog';
import type { Warehouse } from '@meterline/warehouse';
import { z } from 'zod';
import { select } from '../harness/stack.js';
import { maskCursor, Oracle, type OracleQuery } from '../oracle/model.js';
import type { UsageStream } from './stream.js';
import { pause } from './waiting.js';

/** The result of a comparison. Marks are those of {@link UsageStream}. */
export interface Comparison {
  /** Accepted events that are missing or show a payload that should not win, and refused events that were not kept. */
  readonly lost: readonly string[];
  /** Events that count more than once, and refused events that were kept more often than sent. */
  readonly doubled: readonly string[];
  readonly complaints: readonly string[];
}

export function merge(...compared: readonly Comparison[]): Comparison {
  return {
    lost: compared.flatMap(({ lost }) => lost),
    doubled: compared.flatMap(({ doubled }) => doubled),
    complaints: compared.flatMap(({ complaints }) => complaints),
  };
}

export function isClean({ lost, doubled, complaints }: Comparison): boolean {
  return lost.length + doubled.length + complaints.length === 0;
}

const RETRY_MS = 250;
const ANSWER_WITHIN_MS = 120_000;
const REQUEST_TIMEOUT_MS = 60_000;

/** Its parameters have one value each. */
type UnfilteredQuery = Pick<OracleQuery, 'startTime' | 'endTime' | 'resolution' | 'groupBy'>;

/** One group for each event; usage is shown because the billing dimension is a group field. */
export function eventByEvent(window: UsageStream['window']): UnfilteredQuery {
  return { ...window, resolution: 'monthly', groupBy: 'resource_uuid,billing_dimension' };
}

const pageMeta = z.object({ meta: z.object({ hasMore: z.boolean(), nextCursor: z.string() }) });

/** The query API, and a key of the stream's account. */
export interface Asker {
  readonly url: string;
  readonly key: string;
}

export async function compareAccepted(asker: Asker, stream: UsageStream, signal: AbortSignal): Promise<Comparison> {
  const oracle = new Oracle();
  for (const event of stream.good) {
    if (oracle.accept(event) === 'refused') throw new Error(`the oracle refuses ${JSON.stringify(event)}`);
  }
  const { accountId, window } = stream;
  const perEvent = eventByEvent(window);
  const altogether: UnfilteredQuery = { ...window, resolution: 'hourly' };
  const pages = await readPages(asker, accountId, perEvent, signal);
  const expectedPages = oracle.pages(accountId, perEvent);
  const [sum] = await readPages(asker, accountId, altogether, signal);

  const compared = compareEntries(entriesOf(pages), entriesOf(expectedPages), stream.good);
  const isExact = pages.join('\n') === expectedPages.join('\n') && sum === oracle.metrics(accountId, altogether);
  const isExplained = compared.lost.length + compared.doubled.length > 0;
  return { ...compared, complaints: isExact || isExplained ? [] : ['the answer differs from the oracle’s text'] };
}

/** The bodies of all pages, their cursors masked. */
async function readPages(
  asker: Asker,
  account: string,
  query: UnfilteredQuery,
  signal: AbortSignal,
): Promise<string[]> {
  const pages: string[] = [];
  for (let cursor = ''; ; ) {
    const parameters = new URLSearchParams({ ...query, limit: '100', cursor });
    const body = await read(asker, `/v0/accounts/${account}/metrics?${parameters}`, signal);
    pages.push(maskCursor(body));
    const { meta } = pageMeta.parse(JSON.parse(body));
    if (!meta.hasMore) return pages;
    cursor = meta.nextCursor;
  }
}

/** Retries for a while, because the API may not have reconnected yet to a server that was restarted. */
export async function read({ url, key }: Asker, path: string, signal: AbortSignal): Promise<string> {
  const deadline = Date.now() + ANSWER_WITHIN_MS;
  for (;;) {
    const response = await fetch(`${url}${path}`, {
      headers: { authorization: `Bearer ${key}` },
      signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_TIMEOUT_MS)]),
    });
    const body = await response.text();
    if (response.status === 200) return body;
    if (response.status !== 503 || Date.now() > deadline) throw new Error(`${response.status}: ${body}`);
    await pause(RETRY_MS, signal);
  }
}

interface Entry {
  readonly mark: string;
  readonly usage: string;
  /** The dimension, cost and usage of the entry, every digit. */
  readonly amounts: string;
}

const ENTRY = /"resourceUuid":"([^"]+)","billingDimension":"([a-z_]+)","summary":\{"cost":([\d.]+),"usage":([\d.]+)\}/g;

export function entriesOf(pages: readonly string[]): Entry[] {
  return [...pages.join('\n').matchAll(ENTRY)].map(([, mark = '', dimension, cost, usage = '']) => ({
    mark,
    usage,
    amounts: `${dimension} ${cost} ${usage}`,
  }));
}

/** An event that shows another of its own payloads counts as lost: the payload that should win is missing. */
export function compareEntries(
  shown: readonly Entry[],
  expected: readonly Entry[],
  good: readonly UsageEventInput[],
): Omit<Comparison, 'complaints'> {
  const shownOf = groupBy(shown, ({ mark }) => mark);
  const payloads = groupBy(good, ({ resourceUuid }) => resourceUuid ?? '');
  const expectedOf = new Map(expected.map(({ mark, amounts }) => [mark, amounts]));
  const lost: string[] = [];
  const doubled: string[] = [];
  for (const mark of payloads.keys()) {
    const found = shownOf.get(mark) ?? [];
    const [first] = found;
    if (found.length <= 1 && first?.amounts === expectedOf.get(mark)) continue;
    const isOnePayload = payloads.get(mark)?.some(({ usage }) => Number(usage) === Number(first?.usage));
    if (first === undefined || (found.length === 1 && isOnePayload)) lost.push(mark);
    else doubled.push(mark);
  }
  return { lost, doubled };
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}

const keptRows = z.array(z.object({ reason: z.string(), payload: z.string() }));

/**
 * Every bad event must be in rejected_events, with the right reason, and no more often than it was sent.
 * @param attempts how often a job may have been added to the queue
 */
export async function compareRefused(
  warehouse: Warehouse,
  { accountId, refused }: UsageStream,
  attempts: (job: number) => number,
): Promise<Comparison> {
  const query = 'SELECT reason, payload FROM rejected_events FINAL WHERE position(payload, {marks: String}) > 0';
  const kept = keptRows.parse(await select(warehouse, query, { marks: `${accountId}/refused-` }));
  const rowsOf = (mark: string) => kept.filter(({ payload }) => payload.includes(mark));
  const lost = refused.filter(({ mark, reason }) => !rowsOf(mark).some((row) => row.reason === reason));
  const doubled = refused.filter(({ mark, job }) => rowsOf(mark).length > attempts(job));
  const asked = new Map(refused.map(({ mark, reason }) => [mark, reason]));
  const strays = kept.filter(({ reason, payload }) =>
    [...asked].every(([mark, expected]) => !payload.includes(mark) || reason !== expected),
  );
  return {
    lost: lost.map(({ mark }) => mark),
    doubled: doubled.map(({ mark }) => mark),
    complaints: strays.map(({ reason, payload }) => `refused for another reason, ${reason}: ${payload.slice(0, 200)}`),
  };
}
