import { expect, it } from '@jest/globals';
import { USAGE } from '../../../test/emitter/fixture.js';
import type { EventToRecord } from './event.js';
import { checkUsage, openSums, type UsageToSum } from './sums.js';

const NOON = Date.UTC(2026, 9, 1, 12);
const GBS = 'agent_compute_runtime_gbs';

/** Sums whose window the test ends, and what they have reported. */
function sumsOfTest() {
  const events: EventToRecord[] = [];
  const room = { is: true };
  const sums = openSums(3_600_000, (event) => {
    if (room.is) events.push(event);
    return room.is;
  });
  const add = (changes: Partial<UsageToSum>, now = NOON) => {
    const usage = checkUsage({ ...USAGE, ...changes }, now);
    if (!usage.ok) throw new Error(usage.message);
    return sums.add(usage.value);
  };
  return { sums, add, events, room };
}

it('a sum of equal usage is one event, with the id and the time of the first', () => {
  const { sums, add, events } = sumsOfTest();
  for (let n = 0; n < 1_000; n += 1) add({ usage: n % 2 }, NOON + n);
  sums.reportAll();
  sums.reportAll();
  const own = { eventId: expect.any(String), timestamp: '2026-10-01T12:00:00.000Z' };
  expect(events).toEqual([{ ...USAGE, usage: '500', ...own }]);
});

it('a sum is of one account, workspace, resource, dimension and UTC hour', () => {
  const { sums, add, events } = sumsOfTest();
  add({});
  add({ accountId: 'other' });
  add({ workspace: 'staging' });
  add({ resourceName: 'sales' });
  add({ resourceUuid: '1' });
  add({ billingDimension: GBS, usage: '0.1' });
  add({}, NOON + 3_599_999);
  add({}, NOON + 3_600_000);
  sums.reportAll();
  expect(events.map(({ usage, timestamp }) => `${usage} ${timestamp?.slice(11, 16)}`)).toEqual([
    '2 12:00',
    ...Array(4).fill('1 12:00'),
    '0.1 12:00',
    '1 13:00',
  ]);
});

it('a sum of decimals is exact', () => {
  const { sums, add, events } = sumsOfTest();
  for (const usage of [0.1, 0.2, '0.000000001']) add({ billingDimension: GBS, usage });
  sums.reportAll();
  expect(events[0]).toMatchObject({ usage: '0.300000001' });
});

it('a sum that would be too large for an event is two', () => {
  const { sums, add, events } = sumsOfTest();
  for (const usage of ['999999999999999', '1', '1']) add({ usage });
  sums.reportAll();
  expect(events.map(({ usage }) => usage)).toEqual(['999999999999999', '2']);
  expect(new Set(events.map(({ eventId }) => eventId)).size).toBe(2);
});

it('a sum that finds no room stays, and there are never more than 10,000', () => {
  const { sums, add, events, room } = sumsOfTest();
  room.is = false;
  const isTaken = Array.from({ length: 10_001 }, (_, n) => add({ resourceName: `agent-${n}` }));
  expect(isTaken.indexOf(false)).toBe(10_000);
  expect(add({ resourceName: 'agent-0' })).toBe(true);
  room.is = true;
  sums.reportAll();
  expect(events).toHaveLength(10_000);
  expect(events[0]).toMatchObject({ resourceName: 'agent-0', usage: '2' });
});

it.each(['eventId', 'timestamp', 'revision', 'void'])(
  'a sum takes no usage with its own %s, which it would lose',
  (field) => {
    expect(checkUsage(Object.assign({ ...USAGE }, { [field]: 1 }), NOON)).toMatchObject({
      ok: false,
      reason: 'unknown_field',
      message: expect.stringContaining(field),
    });
  },
);
