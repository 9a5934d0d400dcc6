/** The tools of the tests themselves: what would let a failure pass unseen. */
import { describe, expect, it } from '@jest/globals';
import { parseUsageEvent, type UsageEvent, type UsageEventInput } from '@meterline/catalog/plain';
import { eventsOfJob } from '@meterline/service/job';
import { differentEvents, eventByEvent } from '../faults/compare.js';
import { buildStream, SeededRandom, streamWindow } from '../faults/stream.js';
import { Oracle } from '../oracle/model.js';
import { usageEvent } from './events.js';
import { type CheckedResponse, checkResponse } from './openapi-check.js';

const HEADERS = { 'content-type': 'application/json; charset=utf-8' };
const ENTRY = { summary: { cost: 1.5 }, timeseries: [{ timestamp: '2025-10-01T00:00:00Z', cost: 1.5 }] };
const METRICS = {
  startTime: '2025-10-01T00:00:00Z',
  endTime: '2025-10-02T00:00:00Z',
  resolution: 'daily',
  summary: { totalCost: 1.5 },
  data: [ENTRY],
  meta: { hasMore: false, nextCursor: '' },
};
/** The headers of a response of metrics. */
const TAGGED = { headers: { etag: 'W/"1"' } };
const ERROR = { code: 403, error: 'forbidden', message: 'Access denied', requestId: 'r' };

function check(
  status: number,
  body: unknown,
  { headers = {}, ...rest }: Partial<CheckedResponse> | { headers?: Record<string, string> } = {},
) {
  const text = body === undefined ? '' : JSON.stringify(body);
  const response = { method: 'GET', path: '/v0/accounts/acme/metrics', status, text, body, ...rest };
  return () =>
    checkResponse({ ...response, headers: new Headers({ ...HEADERS, ...Object.fromEntries(new Headers(headers)) }) });
}

describe('the comparison with the OpenAPI document', () => {
  it.each([
    ['metrics', check(200, METRICS, TAGGED)],
    ['metrics that are the same', check(304, undefined, TAGGED)],
    ['an error', check(403, ERROR)],
    ['an error with its header', check(401, { ...ERROR, code: 401 }, { headers: { 'www-authenticate': 'Bearer' } })],
    ['a HEAD', check(200, undefined, { ...TAGGED, method: 'HEAD' })],
    ['an unknown route', check(404, { ...ERROR, code: 404 }, { path: '/nope' })],
    ['a revocation', check(200, undefined, { method: 'DELETE', path: '/v0/service_accounts/a/api_keys/b' })],
  ])('a response that the document describes passes: %s', (_name, passes) => expect(passes).not.toThrow());

  it.each([
    ['a foreign member', check(200, { ...METRICS, data: [{ ...ENTRY, label: 'x' }] }, TAGGED), /additional properties/],
    ['a status that there is not', check(204, undefined), /not in the document/],
    ['an error that is no JSON', check(500, undefined, { headers: { 'content-type': 'text/html' } }), /not JSON/],
    ['a tag that is missing', check(200, METRICS), /without the header ETag/],
    ['a challenge that is missing', check(401, { ...ERROR, code: 401 }), /without the header WWW-Authenticate/],
    [
      'a body where there is none',
      check(200, {}, { method: 'DELETE', path: '/v0/service_accounts/a/api_keys/b' }),
      /with a body/,
    ],
    ['a route that is not described', check(200, {}, { path: '/v0/secret' }), /not in the document/],
  ])('a response that deviates fails: %s', (_name, fails, reason) => expect(fails).toThrow(reason));
});

/** What agreement with the service does not prove of the oracle: how it treats what is not decided yet. */
describe('the oracle', () => {
  it('the oracle keeps both payloads of a revision until the winner is known, then only the winner', () => {
    const oracle = new Oracle();
    for (const usage of [5, 7]) expect(oracle.accept(usageEvent(1, { usage }))).toBe('accepted');
    expect(() => oracle.totals('acme')).toThrow('contested');
    expect(oracle.stored()).toMatchObject([{ accountId: 'acme', payloads: [{}, {}] }]);
    const worlds = oracle.worlds('acme');
    for (const world of worlds) for (const usage of [5, 7]) world.accept(usageEvent(1, { usage }));
    expect(worlds.map((world) => world.totals('acme').usage)).toEqual(['5', '7']);
  });
});

const FIRST: UsageEventInput = {
  eventId: '0190c5e4-7b1a-7def-8abc-0123456789ab',
  accountId: 'acme',
  workspace: 'production',
  resourceType: 'job',
  resourceName: 'nightly',
  resourceUuid: 'event-1',
  billingDimension: 'job_compute_runtime_gbs',
  usage: '10.5',
  timestamp: '2026-05-31T12:00:00Z',
};
const OTHER: UsageEventInput = { ...FIRST, eventId: '0190c5e4-7b1a-7def-8abc-0123456789ac', resourceUuid: 'event-2' };
const REVISED: UsageEventInput = { ...FIRST, revision: 1, usage: '7' };
const VOIDED: UsageEventInput = { ...FIRST, revision: 1, void: true };

const again = { eventId: OTHER.eventId };
const MOVED: UsageEventInput = { ...REVISED, billingDimension: 'job_image_storage_gbs' };

/** The pages of a service that has stored these payloads. */
function pages(payloads: readonly UsageEventInput[]) {
  const oracle = new Oracle();
  for (const payload of payloads) oracle.accept(payload);
  return oracle.pages('acme', eventByEvent(streamWindow(Date.UTC(2026, 5))));
}

const build = (seed: number) => buildStream(new SeededRandom(seed), 'acme', 1_000, Date.UTC(2026, 5));

function keyOf({ eventId, revision = 0 }: { eventId: string; revision?: number | undefined }): string {
  return `${eventId} ${revision}`;
}

/** What decides whether a run has passed: the comparison must find every kind of difference, and the stream must be what it says. */
describe('the runs with faults', () => {
  it.each([
    ['nothing where all is right', [FIRST, OTHER], [FIRST, OTHER], []],
    ['nothing where a voided event is not shown', [OTHER], [VOIDED, FIRST, OTHER], []],
    ['a missing event', [OTHER], [FIRST, OTHER], [/^event-1: nothing instead of job_compute/]],
    ['a revision that did not win', [FIRST], [FIRST, REVISED], [/^event-1: job_.* instead of job_/]],
    ['a void that did not win', [FIRST], [FIRST, VOIDED], [/^event-1: job_.* instead of nothing/]],
    ['an event that counts twice', [FIRST, { ...FIRST, ...again }], [FIRST], [/^event-1: /]],
    ['two payloads of one event', [FIRST, { ...REVISED, ...again }], [FIRST, REVISED], [/^event-1: /]],
    ['an event under two dimensions', [FIRST, { ...MOVED, ...again }], [FIRST, MOVED], [/^event-1: .* and /]],
  ])('the comparison of a run finds %s', (_what, shown, sent, differences) => {
    const found = differentEvents(pages(shown), pages(sent), sent);
    expect(found).toEqual(differences.map((difference) => expect.stringMatching(difference)));
  });

  it('a seed gives the same stream each time, and another seed another', () => {
    expect(build(7)).toEqual(build(7));
    expect(build(7).jobs).not.toEqual(build(8).jobs);
  });

  it('a stream holds duplicates, revisions in any order, voids, and bad events with the reason why the product rejects them', () => {
    const { jobs, good, identities, rejected } = build(7);
    const [sent, reasons] = [[] as UsageEvent[], new Map<string, unknown>()];
    for (const [job, data] of jobs.entries()) {
      const events = eventsOfJob(data);
      for (const item of events.ok ? events.value : [data]) {
        const checked = events.ok ? parseUsageEvent(item, Date.now()) : events;
        if (checked.ok) sent.push(checked.value);
        else
          reasons.set(JSON.stringify(item).match(/acme\/rejected-[a-z0-9-]+/)?.[0] ?? '', {
            reason: checked.reason,
            job,
          });
      }
    }
    expect(new Set(sent.map(keyOf))).toEqual(new Set(good.map(keyOf)));
    expect(sent.length).toBeGreaterThan(good.length * 1.1);
    expect(good.length).toBeGreaterThan(identities * 1.2);
    expect(reasons).toEqual(new Map(rejected.map(({ mark, ...found }) => [mark, found])));
    expect(rejected.length).toBeGreaterThanOrEqual(50);
    const oracle = new Oracle();
    expect(good.filter((event) => oracle.accept(event) === 'rejected')).toEqual([]);
    const { events } = oracle.totals('acme');
    expect(events).toBeLessThan(identities);
    expect(events).toBeGreaterThan(identities * 0.8);
  });
});
