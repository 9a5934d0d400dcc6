import { describe, expect, it } from '@jest/globals';
import type { EventToRecord } from './event.js';
import { checkWorkload, hourSlices, openTimers, type Workload } from './timers.js';

const HOUR = 3_600_000;
const NOON = Date.UTC(2026, 9, 1, 12);
const SANDBOX: Workload = {
  accountId: 'acme',
  workspace: 'production',
  resourceType: 'sandbox',
  resourceName: 'builder',
  billingDimension: 'sandbox_compute_runtime_gbs',
  gb: 2,
};

describe('a span of time', () => {
  it('within an hour is one slice', () => {
    expect([...hourSlices(NOON + 1, NOON + 2)]).toEqual([{ from: NOON + 1, ms: 1 }]);
  });

  it('is split at each full hour, which begins the next one', () => {
    expect([...hourSlices(NOON - 5, NOON + 2 * HOUR + 7)]).toEqual([
      { from: NOON - 5, ms: 5 },
      { from: NOON, ms: HOUR },
      { from: NOON + HOUR, ms: HOUR },
      { from: NOON + 2 * HOUR, ms: 7 },
    ]);
    expect([...hourSlices(NOON - HOUR, NOON)]).toEqual([{ from: NOON - HOUR, ms: HOUR }]);
  });

  it('of nothing has none', () => expect([...hourSlices(NOON, NOON)]).toEqual([]));
});

/** Timers whose clock the test sets, and what they have reported. */
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
  const reported = () => events.splice(0).map(({ timestamp, usage }) => [timestamp, usage]);
  const start = (workload: Workload) => {
    const checked = checkWorkload(workload, time.now);
    if (!checked.ok) throw new Error(checked.message);
    return timers.start(checked.value);
  };
  return { timers, start, time, pass, reported };
}

describe('a running timer', () => {
  it('reports GB-seconds since its last report, and the rest when it stops', () => {
    const { timers, start, pass, reported } = timersAt(NOON);
    const timer = start({ ...SANDBOX, gb: '0.5' });
    pass(60_000);
    timers.reportAll();
    pass(1_500);
    timer.stop();
    pass(5_000);
    timer.stop();
    timers.reportAll();
    expect(reported()).toEqual([
      ['2026-10-01T12:00:00.000Z', '30'],
      ['2026-10-01T12:01:00.000Z', '0.75'],
    ]);
  });

  it('splits at UTC hours', () => {
    const { start, pass, reported } = timersAt(NOON - 1_000);
    const timer = start(SANDBOX);
    pass(4_000);
    timer.stop();
    expect(reported()).toEqual([
      ['2026-10-01T11:59:59.000Z', '2'],
      ['2026-10-01T12:00:00.000Z', '6'],
    ]);
  });

  it('adds up exactly, however often it reports', () => {
    const { timers, start, pass, reported } = timersAt(NOON);
    const timer = start({ ...SANDBOX, gb: '0.333333333' });
    for (let second = 0; second < 1_000; second += 1) {
      pass(1);
      timers.reportAll();
    }
    timer.stop();
    const usages = reported().map(([, usage]) => BigInt(Math.round(Number(usage) * 1e9)));
    expect(usages).toHaveLength(1_000);
    expect(usages.reduce((sum, usage) => sum + usage, 0n)).toBe(333_333_333n);
  });

  it('measures what has passed, even if the wall clock is set', () => {
    const { timers, start, time, pass, reported } = timersAt(NOON);
    const timer = start(SANDBOX);
    pass(10_000);
    timers.reportAll();
    time.now -= 60_000;
    pass(10_000);
    timer.stop();
    expect(reported()).toEqual([
      ['2026-10-01T12:00:00.000Z', '20'],
      ['2026-10-01T11:59:10.000Z', '20'],
    ]);
  });

  it('keeps what finds no room for the next report, even when it has stopped', () => {
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
    expect(reported()).toEqual([['2026-10-01T12:00:00.000Z', '40']]);
  });
});

describe('a workload', () => {
  it.each([
    [
      'invalid_billing_dimension',
      { billingDimension: 'custom_domain_active_time_hours', resourceType: 'custom_domain' },
    ],
    ['invalid_billing_dimension', { billingDimension: 'coffee' }],
    ['invalid_usage', { gb: -1 }],
    ['missing_field', { gb: undefined }],
    ['invalid_workspace', { workspace: '' }],
  ])('is rejected for %s', (reason, changes) => {
    expect(checkWorkload(Object.assign({ ...SANDBOX }, changes), NOON)).toMatchObject({ ok: false, reason });
  });
});
