/** Compares stored rows and responses with what was sent, and names the events that differ. */
import type { UsageEventInput } from '@meterline/catalog';
import { MeterlineConnectionError, MeterlineError } from '@meterline/client';
import type { Warehouse } from '@meterline/warehouse';
import { z } from 'zod';
import { pause } from '../harness/queue.js';
import { select } from '../harness/stack.js';
import type { Rejection } from '../harness/stream.js';
import { maskedPages, Oracle, type OracleQuery } from '../oracle/model.js';
import type { MonthStream } from './stream.js';

const RETRY_MS = 250;
const RESPONSE_WITHIN_MS = 600_000;
const REQUEST_TIMEOUT_MS = 60_000;

/** Its parameters have one value each. */
type UnfilteredQuery = Pick<OracleQuery, 'startTime' | 'endTime' | 'resolution' | 'groupBy'>;

/** One group for each event; usage is shown because the billing dimension is a group field. */
export function eventByEvent(window: MonthStream['window']): UnfilteredQuery {
  return { ...window, resolution: 'monthly', groupBy: 'resource_uuid,billing_dimension' };
}

/** The query API, and a key of the stream's account. */
export interface Asker {
  readonly url: string;
  readonly key: string;
}

/** @returns what differs from the oracle's responses */
export async function compareAccepted(
  asker: Asker,
  { accountId, window, events }: MonthStream,
  signal: AbortSignal,
): Promise<string[]> {
  const oracle = new Oracle();
  const good = events.flat();
  for (const event of good) {
    if (oracle.accept(event) !== 'accepted') throw new Error(`the oracle rejects ${JSON.stringify(event)}`);
  }
  const perEvent = eventByEvent(window);
  const altogether: UnfilteredQuery = { ...window, resolution: 'hourly' };
  const readPages = (query: UnfilteredQuery) =>
    maskedPages((cursor) => {
      const parameters = new URLSearchParams({ ...query, limit: '100', cursor });
      return read(asker, `/v0/accounts/${accountId}/metrics?${parameters}`, signal);
    });
  const pages = await readPages(perEvent);
  const expectedPages = oracle.pages(accountId, perEvent);
  const [sum] = await readPages(altogether);
  const differences = differentEvents(pages, expectedPages, good);
  const isExact = pages.join('\n') === expectedPages.join('\n') && sum === oracle.pages(accountId, altogether)[0];
  return isExact || differences.length > 0 ? differences : ['the response differs from the oracle’s text'];
}

/** Retries for some time, because the API may not have reconnected yet to a restarted server. */
export async function read({ url, key }: Asker, path: string, signal: AbortSignal): Promise<string> {
  const deadline = Date.now() + RESPONSE_WITHIN_MS;
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

/** Whether a call of the client failed because a server or a service is away. */
export function isOutage(error: unknown): boolean {
  return error instanceof MeterlineError ? error.status === 503 : error instanceof MeterlineConnectionError;
}

const GROUP = /"resourceUuid":"([^"]+)","billingDimension":"([a-z_]+)","summary":\{"cost":([\d.]+),"usage":([\d.]+)\}/g;

/** @param pages bodies by {@link eventByEvent} @returns the events whose groups differ in number or in any digit */
export function differentEvents(
  pages: readonly string[],
  expected: readonly string[],
  sent: readonly UsageEventInput[],
): string[] {
  const [shown, wanted] = [groupsOf(pages), groupsOf(expected)];
  return [...new Set(sent.map(({ resourceUuid }) => resourceUuid ?? ''))].flatMap((mark) => {
    const [found, due] = [shown.get(mark) ?? 'nothing', wanted.get(mark) ?? 'nothing'];
    return found === due ? [] : [`${mark}: ${found} instead of ${due}`];
  });
}

/** Dimension, cost and usage of each group of an event, by its mark. */
function groupsOf(pages: readonly string[]): ReadonlyMap<string, string> {
  const groups = new Map<string, string>();
  for (const [, mark = '', ...amounts] of pages.join('\n').matchAll(GROUP)) {
    groups.set(mark, [...(groups.has(mark) ? [groups.get(mark)] : []), amounts.join(' ')].join(' and '));
  }
  return groups;
}

const keptRows = z.array(z.object({ reason: z.string(), mark: z.string() }));

/**
 * Every bad event must be in rejected_events, with the right reason, and no more often than it was sent.
 * @param name the beginning of every mark
 * @param rejected with the number of times that the job of each may have been added to the queue
 * @returns what differs
 */
export async function compareRejected(
  warehouse: Warehouse,
  name: string,
  rejected: readonly (Rejection & { readonly attempts: number })[],
): Promise<string[]> {
  const query = `SELECT reason, extract(payload, '[a-z0-9-]+/rejected-[a-z0-9-]+') AS mark
                 FROM rejected_events FINAL WHERE startsWith(mark, {beginning: String})`;
  const kept = new Map<string, string[]>();
  for (const { mark, reason } of keptRows.parse(await select(warehouse, query, { beginning: `${name}/` }))) {
    kept.set(mark, [...(kept.get(mark) ?? []), reason]);
  }
  return rejected.flatMap(({ mark, reason, attempts }) => {
    const reasons = kept.get(mark) ?? [];
    const isRight = reasons.length > 0 && reasons.length <= attempts && reasons.every((found) => found === reason);
    return isRight ? [] : [`${mark}: kept as ${reasons.join(', ') || 'nothing'} instead of ${reason}`];
  });
}
