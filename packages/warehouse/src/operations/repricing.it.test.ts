import { expect, it } from '@jest/globals';
import { pricedEvent } from '../../../../test/harness/events.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import type { PricedEvent } from '../events/event-rows.js';
import { insertUsageEvents } from '../events/usage-events.js';
import { type EventKey, readDimensionSpans, readRepricingStep } from './repricing.js';

const START = Date.UTC(2025, 9, 1, 0, 30);
const END = Date.UTC(2025, 9, 2, 0, 30);
const window = { startTime: START, endTime: END };
const MINUTE = 60_000;

const database = testDatabase();

function event(changes: Partial<PricedEvent>): PricedEvent {
  return pricedEvent({ timestamp: START, usage: 1_500_000_000n, cost: 17_250_000n, ...changes });
}

/** All events of the account in the window, read so many at a time. */
async function readInSteps(accountId: string, limit: number): Promise<PricedEvent[]> {
  const events: PricedEvent[] = [];
  let last: EventKey | undefined;
  for (;;) {
    const step = await readRepricingStep(database.warehouse, { accountId, window }, last, limit);
    expect(step.length).toBeLessThanOrEqual(limit);
    if (step.length === 0) return events;
    events.push(...step);
    last = step.at(-1);
  }
}

it('steps give every field of an event', async () => {
  const whole = event({
    ...{ accountId: 'whole', resourceUuid: 'r-1', workspace: 'é\u2028"\\', timestamp: START + 7 },
    ...{ usage: 999_999_999_999_999_999_999_999n, cost: 10n ** 33n + 1n },
    ...{ revision: 65_535, priceRevision: 3, priceBook: 65_535 },
  });
  await insertUsageEvents(database.warehouse, [whole]);
  expect(await readInSteps('whole', 10)).toEqual([whole]);
});

it.each([1, 3, 100])('steps give every event once, %d at a time', async (limit) => {
  const accountId = `steps-${limit}`;
  // Random ids, several an hour, over the end of a day.
  const events = Array.from({ length: 50 }, (_, n) => event({ accountId, timestamp: START + n * 17 * MINUTE }));
  await insertUsageEvents(database.warehouse, events);
  const ids = (await readInSteps(accountId, limit)).map(({ eventId }) => eventId);
  expect(ids.sort()).toEqual(events.map(({ eventId }) => eventId).sort());
});

it('steps and spans keep to the window and the account, and leave out what is voided and what was replaced', async () => {
  const accountId = 'kept';
  const [revised, voided, moved] = [
    event({ accountId, timestamp: START + MINUTE }),
    event({ accountId }),
    event({ accountId }),
  ];
  const outside = [event({ accountId, timestamp: START - 1 }), event({ accountId, timestamp: END }), event({})];
  await insertUsageEvents(database.warehouse, [...outside, revised, voided, moved]);
  const latest = { ...revised, usage: 2n, revision: 1 };
  await insertUsageEvents(database.warehouse, [
    latest,
    { ...voided, revision: 1, voided: true },
    // Within its hour, and out of the window.
    { ...moved, revision: 1, timestamp: START - MINUTE },
  ]);
  expect(await readInSteps(accountId, 10)).toEqual([latest]);
  const { eventId, timestamp } = latest;
  expect(await readDimensionSpans(database.warehouse, { accountId, window })).toEqual([
    { billingDimension: 'sandbox_compute_runtime_gbs', events: 1, first: { eventId, timestamp } },
  ]);
});

it('spans of dimensions count events and name the oldest, and are none where there is nothing', async () => {
  const accountId = 'spans';
  const job = { accountId, resourceType: 'job', billingDimension: 'job_compute_runtime_gbs' } as const;
  const [late, oldest] = [2, 1].map((minutes) => event({ ...job, timestamp: START + minutes * MINUTE }));
  const other = event({ accountId, timestamp: START + 3 * MINUTE });
  await insertUsageEvents(
    database.warehouse,
    [late, oldest, other].flatMap((each) => each ?? []),
  );
  const first = { eventId: oldest?.eventId, timestamp: oldest?.timestamp };
  expect(await readDimensionSpans(database.warehouse, { accountId, window })).toEqual([
    { billingDimension: 'job_compute_runtime_gbs', events: 2, first },
    expect.objectContaining({ billingDimension: 'sandbox_compute_runtime_gbs', events: 1 }),
  ]);
  expect(await readDimensionSpans(database.warehouse, { accountId: 'nobody', window })).toEqual([]);
});
