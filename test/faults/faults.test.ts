/** What decides whether a run has passed: the comparison must find every kind of difference, and the stream must be what it says. */
import { describe, expect, it } from '@jest/globals';
import { eventsOfJob, parseUsageEvent, type UsageEvent, type UsageEventInput } from '@meterline/catalog';
import { Oracle } from '../oracle/model.js';
import { compareEntries, entriesOf, eventByEvent } from './compare.js';
import { SeededRandom } from './seeded-random.js';
import { buildStream, streamWindow } from './stream.js';

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

/** The entries of a service that has stored these payloads. */
function entries(payloads: readonly UsageEventInput[]) {
  const oracle = new Oracle();
  for (const payload of payloads) oracle.accept(payload);
  return entriesOf(oracle.pages('acme', eventByEvent(streamWindow(Date.UTC(2026, 5)))));
}

function compare(shown: readonly UsageEventInput[], sent: readonly UsageEventInput[]) {
  return compareEntries(entries(shown), entries(sent), sent);
}

describe('compareEntries', () => {
  it('finds nothing where everything is right', () => {
    expect(compare([FIRST, OTHER], [FIRST, OTHER])).toEqual({ lost: [], doubled: [] });
    expect(compare([OTHER], [VOIDED, FIRST, OTHER])).toEqual({ lost: [], doubled: [] });
  });

  it('finds a missing event', () => {
    expect(compare([OTHER], [FIRST, OTHER])).toEqual({ lost: ['event-1'], doubled: [] });
  });

  it('finds a revision that did not win, and a void that did not', () => {
    expect(compare([FIRST], [FIRST, REVISED])).toEqual({ lost: ['event-1'], doubled: [] });
    expect(compare([FIRST], [FIRST, VOIDED])).toEqual({ lost: ['event-1'], doubled: [] });
  });

  it('finds an event that counts twice, with the same payload or with two', () => {
    const again = { eventId: OTHER.eventId };
    expect(compare([FIRST, { ...FIRST, ...again }], [FIRST])).toEqual({ lost: [], doubled: ['event-1'] });
    expect(compare([FIRST, { ...REVISED, ...again }], [FIRST, REVISED])).toEqual({ lost: [], doubled: ['event-1'] });
  });

  it('finds the two payloads of an event under two billing dimensions', () => {
    const moved: UsageEventInput = { ...REVISED, billingDimension: 'job_image_storage_gbs' };
    const shown = [FIRST, { ...moved, eventId: OTHER.eventId }];
    expect(compare(shown, [FIRST, moved])).toEqual({ lost: [], doubled: ['event-1'] });
  });
});

const build = (seed: number) => buildStream(new SeededRandom(seed), 'acme', 1_000, Date.UTC(2026, 5));

describe('buildStream', () => {
  it('builds the same stream from the same seed, and another from another', () => {
    expect(build(7)).toEqual(build(7));
    expect(build(7).jobs).not.toEqual(build(8).jobs);
  });

  it('sends every good payload, some of them again, and revisions in any order', () => {
    const { jobs, good, identities } = build(7);
    const sent = jobs.flatMap((data) => acceptedOf(data));
    expect(new Set(sent.map(keyOf))).toEqual(new Set(good.map(keyOf)));
    expect(sent.length).toBeGreaterThan(good.length * 1.1);
    expect(good.length).toBeGreaterThan(identities * 1.2);
    expect(new Set(good.map(({ eventId }) => eventId)).size).toBe(identities);
  });

  it('voids some events for good, and what counts is known', () => {
    const oracle = new Oracle();
    const { good, identities } = build(7);
    expect(good.filter((event) => oracle.accept(event) === 'refused')).toEqual([]);
    const { events } = oracle.totals('acme');
    expect(events).toBeLessThan(identities);
    expect(events).toBeGreaterThan(identities * 0.8);
  });

  it('names the job of everything bad, and the reason why the product refuses it', () => {
    const { jobs, refused } = build(7);
    expect(refused.length).toBeGreaterThanOrEqual(50);
    for (const { mark, reason, job } of refused) {
      expect(reasonsOf(jobs[job]).get(mark)).toBe(reason);
    }
    const all = jobs.flatMap((data) => [...reasonsOf(data).keys()]);
    expect(all.sort()).toEqual(refused.map(({ mark }) => mark).sort());
  });
});

function keyOf({
  eventId,
  revision = 0,
}: {
  readonly eventId: string;
  readonly revision?: number | undefined;
}): string {
  return `${eventId} ${revision}`;
}

function acceptedOf(data: unknown): UsageEvent[] {
  const events = eventsOfJob(data);
  if (!events.ok) return [];
  return events.value.flatMap((event) => {
    const checked = parseUsageEvent(event, Date.now());
    return checked.ok ? [checked.value] : [];
  });
}

/** By the mark in the payload: why the product refuses it. */
function reasonsOf(data: unknown): Map<string, string> {
  const events = eventsOfJob(data);
  const items = events.ok ? events.value : [data];
  return new Map(
    items.flatMap((item) => {
      const checked = events.ok ? parseUsageEvent(item, Date.now()) : events;
      return checked.ok ? [] : [[markIn(item), checked.reason] as const];
    }),
  );
}

function markIn(item: unknown): string {
  return JSON.stringify(item).match(/acme\/refused-[a-z0-9-]+/)?.[0] ?? '';
}
