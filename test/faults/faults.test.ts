/** What decides whether a run has passed: the comparison must find every kind of difference, and the stream must be what it says. */
import { expect, it } from '@jest/globals';
import { eventsOfJob, parseUsageEvent, type UsageEvent, type UsageEventInput } from '@meterline/catalog';
import { Oracle } from '../oracle/model.js';
import { differentEvents, eventByEvent } from './compare.js';
import { buildStream, SeededRandom, streamWindow } from './stream.js';

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

const build = (seed: number) => buildStream(new SeededRandom(seed), 'acme', 1_000, Date.UTC(2026, 5));

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
  expect(good.filter((event) => oracle.accept(event) === 'refused')).toEqual([]);
  const { events } = oracle.totals('acme');
  expect(events).toBeLessThan(identities);
  expect(events).toBeGreaterThan(identities * 0.8);
});

function keyOf({ eventId, revision = 0 }: { eventId: string; revision?: number | undefined }): string {
  return `${eventId} ${revision}`;
}
