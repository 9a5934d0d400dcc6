import { describe, expect, it } from '@jest/globals';
import { eventsOfJob, parseUsageEvent, type UsageEvent } from '@meterline/catalog';
import { Oracle } from '../oracle/model.js';
import { SeededRandom } from './seeded-random.js';
import { buildStream } from './stream.js';

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
