/** Tests validation of events, sums, and timers. */
import { expect, it } from '@jest/globals';
import { parseUsageEvent } from '@meterline/catalog/plain';
import { SANDBOX, USAGE } from '../../../test/emitter/fixture.js';
import { checkEvent, type EventToRecord } from './event.js';
import { checkUsage, checkWorkload, hourSlices, openSums, openTimers, type UsageToSum, type Workload } from './sums.js';

const NOON = Date.UTC(2026, 9, 1, 12);
/** Has milliseconds, as timestamps do. */
const AFTER_NOON = NOON + 7;

/** Returns the event as it is sent. */
function jsonOf(event: EventToRecord) {
  const checked = checkEvent(event, AFTER_NOON);
  if (!checked.ok) throw new Error(checked.message);
  return JSON.parse(JSON.stringify(checked.value.sent));
}

it('an event without ID and timestamp gets a UUID version 7 and the current time', () => {
  const sent = jsonOf(USAGE);
  const { eventId } = sent;
  expect(eventId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  expect(sent).toEqual({ ...USAGE, eventId, timestamp: '2026-10-01T12:00:00.007Z' });
  expect(parseUsageEvent(sent, AFTER_NOON)).toMatchObject({ ok: true, value: { eventId, timestamp: AFTER_NOON } });
});

it('an event keeps its own ID, timestamp and revision', () => {
  const eventId = '00000000-0000-7000-8000-000000000000';
  const own = { eventId, timestamp: '2026-10-01T11:00:00Z', resourceUuid: '1', revision: 2, void: true };
  expect(jsonOf({ ...USAGE, ...own })).toEqual({ ...USAGE, ...own });
});

it('later changes to the recorded object do not change the event', () => {
  const usage = { ...USAGE };
  const checked = checkEvent(usage, AFTER_NOON);
  usage.usage = 99;
  expect(checked).toMatchObject({ ok: true, value: { sent: { usage: 1 } } });
});

it.each([
  ['invalid_usage', { usage: 1.5 }],
  ['unknown_field', { price: 1 }],
  ['dimension_mismatch', { resourceType: 'job' }],
  ['timestamp_in_future', { timestamp: '2026-10-01T12:10:01Z' }],
])('an event that the worker would reject is rejected with the reason %s', (reason, changes) => {
  expect(checkEvent(Object.assign({ ...USAGE }, changes), AFTER_NOON)).toMatchObject({ ok: false, reason });
});

const GBS = 'agent_compute_runtime_gbs';

/** Opens sums whose window the test ends, and collects their events. */
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

it('a sum becomes one event, with the ID and timestamp of its first usage', () => {
  const { sums, add, events } = sumsOfTest();
  for (let n = 0; n < 1_000; n += 1) add({ usage: n % 2 }, NOON + n);
  sums.reportAll();
  sums.reportAll();
  const own = { eventId: expect.any(String), timestamp: '2026-10-01T12:00:00.000Z' };
  expect(events).toEqual([{ ...USAGE, usage: '500', ...own }]);
});

it('there is a separate sum for each account, workspace, resource, dimension and UTC hour', () => {
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

it('a sum that is too large for one event becomes two events', () => {
  const { sums, add, events } = sumsOfTest();
  for (const usage of ['999999999999999', '1', '1']) add({ usage });
  sums.reportAll();
  expect(events.map(({ usage }) => usage)).toEqual(['999999999999999', '2']);
  expect(new Set(events.map(({ eventId }) => eventId)).size).toBe(2);
});

it('sums without room are kept, up to 100,000 sums', () => {
  const { sums, add, events, room } = sumsOfTest();
  room.is = false;
  const isTaken = Array.from({ length: 100_001 }, (_, n) => add({ resourceName: `agent-${n}` }));
  expect(isTaken.indexOf(false)).toBe(100_000);
  expect(add({ resourceName: 'agent-0' })).toBe(true);
  room.is = true;
  sums.reportAll();
  expect(events).toHaveLength(100_000);
  expect(events[0]).toMatchObject({ resourceName: 'agent-0', usage: '2' });
});

it.each(['eventId', 'timestamp', 'revision', 'void'])('a sum rejects usage with the field %s', (field) => {
  expect(checkUsage(Object.assign({ ...USAGE }, { [field]: 1 }), NOON)).toMatchObject({
    ok: false,
    reason: 'unknown_field',
    message: expect.stringContaining(field),
  });
});

const HOUR = 3_600_000;

it.each([
  [NOON + 1, NOON + 2, [[NOON + 1, 1]]],
  [NOON - HOUR, NOON, [[NOON - HOUR, HOUR]]],
  [NOON, NOON, []],
  [
    NOON - 5,
    NOON + HOUR + 7,
    [
      [NOON - 5, 5],
      [NOON, HOUR],
      [NOON + HOUR, 7],
    ],
  ],
])('a time span from %d to %d is split at full hours', (from, to, slices) => {
  expect([...hourSlices(from, to)].map((slice) => [slice.from, slice.ms])).toEqual(slices);
});

/** Opens timers with a clock that the test sets, and collects time (on 1 October) and usage of their events. */
function timersAt(instant: number) {
  const events: EventToRecord[] = [];
  const time = { now: instant, elapsed: 0, hasRoom: true };
  const pass = (ms: number) => {
    time.now += ms;
    time.elapsed += ms;
  };
  const offer = (event: EventToRecord) => {
    if (time.hasRoom) events.push(event);
    return time.hasRoom;
  };
  const timers = openTimers(HOUR, { now: () => time.now, elapsed: () => time.elapsed }, offer);
  const reported = () => events.splice(0).map(({ timestamp, usage }) => `${timestamp?.slice(11, 19)} ${usage}`);
  const start = (workload: Workload) => {
    const checked = checkWorkload(workload, time.now);
    if (!checked.ok) throw new Error(checked.message);
    return timers.start(checked.value);
  };
  return { timers, start, time, pass, reported };
}

it('a timer reports GB-seconds since its last report, and the rest when it stops', () => {
  const { timers, start, pass, reported } = timersAt(NOON);
  const timer = start({ ...SANDBOX, gb: '0.5' });
  pass(60_000);
  timers.reportAll();
  pass(1_500);
  timer.stop();
  pass(5_000);
  timer.stop();
  timers.reportAll();
  expect(reported()).toEqual(['12:00:00 30', '12:01:00 0.75']);
});

it('a timer reports each UTC hour separately', () => {
  const { start, pass, reported } = timersAt(NOON - 1_000);
  const timer = start(SANDBOX);
  pass(4_000);
  timer.stop();
  expect(reported()).toEqual(['11:59:59 4', '12:00:00 12']);
});

it('the reports of a timer add up exactly, however often it reports', () => {
  const { timers, start, pass, reported } = timersAt(NOON);
  const timer = start({ ...SANDBOX, gb: '0.333333333' });
  for (let second = 0; second < 1_000; second += 1) {
    pass(1);
    timers.reportAll();
  }
  timer.stop();
  const usages = reported().map((text) => BigInt(Math.round(Number(text.split(' ')[1]) * 1e9)));
  expect([usages.length, usages.reduce((sum, usage) => sum + usage, 0n)]).toEqual([1_000, 333_333_333n]);
});

it('a timer measures elapsed time correctly even if the wall clock is set', () => {
  const { timers, start, time, pass, reported } = timersAt(NOON);
  const timer = start(SANDBOX);
  pass(10_000);
  timers.reportAll();
  time.now -= 60_000;
  pass(10_000);
  timer.stop();
  expect(reported()).toEqual(['12:00:00 40', '11:59:10 40']);
});

it('a timer keeps usage without room for the next report, even after it has stopped', () => {
  const { timers, start, time, pass, reported } = timersAt(NOON);
  const timer = start(SANDBOX);
  time.hasRoom = false;
  pass(10_000);
  timers.reportAll();
  pass(10_000);
  timer.stop();
  expect(reported()).toEqual([]);
  pass(HOUR);
  time.hasRoom = true;
  timers.reportAll();
  timers.reportAll();
  expect(reported()).toEqual(['12:00:00 80']);
});

it.each([
  ['invalid_billing_dimension', { billingDimension: 'custom_domain_active_time_hours', resourceType: 'custom_domain' }],
  ['invalid_billing_dimension', { billingDimension: 'coffee' }],
  ['invalid_usage', { gb: -1 }],
  ['missing_field', { gb: undefined }],
  ['invalid_workspace', { workspace: '' }],
])('a workload is rejected with the reason %s: %j', (reason, changes) => {
  expect(checkWorkload(Object.assign({ ...SANDBOX }, changes), NOON)).toMatchObject({ ok: false, reason });
});
