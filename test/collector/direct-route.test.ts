/** A usual request is answered without Express. It must not show, except in the time that it takes. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { z } from 'zod';
import { type CollectorSite, event, startCollectorSite } from './fixture.js';

let site: CollectorSite;
let account: string;
let key: string;
beforeAll(async () => {
  site = await startCollectorSite({ LOG_LEVEL: 'info', ADMIN_PORT: '0' });
  ({ account, key } = await site.account());
});
afterAll(() => site.stop());

const withRequestId = z.object({ requestId: z.string().optional() });

/** What differs from one request to the next. */
const CHANGING: ReadonlySet<string> = new Set(['date', 'x-request-id', 'ratelimit']);

async function ask(path: string, body: string, headers: Readonly<Record<string, string>>) {
  const answer = await fetch(`${site.service.url}/v0/accounts/${path}/events`, { method: 'POST', body, headers });
  const content: unknown = await answer.json();
  const { requestId } = withRequestId.parse(content);
  const id = answer.headers.get('x-request-id');
  const { pid: _pid, time: _time, durationMs, ...line } = await site.service.entry((entry) => entry.requestId === id);
  return {
    status: answer.status,
    vary: answer.headers.get('vary'),
    headers: [...answer.headers].filter(([name]) => !CHANGING.has(name) && name !== 'vary'),
    changing: [...answer.headers.keys()].filter((name) => CHANGING.has(name)),
    body: { ...z.record(z.string(), z.unknown()).parse(content), ...(requestId && { requestId: requestId === id }) },
    line: { ...line, durationMs: typeof durationMs, requestId: line.requestId === id, path: undefined },
  };
}

const json = { 'content-type': 'application/json' };
const good = event();
const bearer = () => ({ authorization: `Bearer ${key}` });

it.each([
  ['an accepted event', () => ({ ...json, ...bearer() }), [good]],
  ['a refused one', () => ({ ...json, ...bearer() }), [event({ usage: -1, eventId: good['eventId'] })]],
  ['no key', () => json, [good]],
  ['a key that never was', () => ({ ...json, authorization: 'Bearer mlk_nobody' }), [good]],
  ['another media type', () => ({ 'content-type': 'text/plain', ...bearer() }), [good]],
  ['a version that does not exist', () => ({ ...json, ...bearer(), 'svc-version': '2000-01-01' }), [good]],
  ['no events', () => ({ ...json, ...bearer() }), []],
])('%s is answered and logged in the same way', async (_what, headersOf, events) => {
  const body = JSON.stringify(events);
  const { vary, ...direct } = await ask(account, body, headersOf());
  // The same account for Express, and nothing that is answered directly.
  const { vary: compressed, ...throughExpress } = await ask(
    `%${account.charCodeAt(0).toString(16)}${account.slice(1)}`,
    body,
    headersOf(),
  );
  expect(direct).toEqual(throughExpress);
  // The one difference, and what tells the two ways apart: only Express' middleware compresses.
  expect([vary, compressed]).toEqual([null, 'Accept-Encoding']);
});
