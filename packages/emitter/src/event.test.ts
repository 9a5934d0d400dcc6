import { describe, expect, it } from '@jest/globals';
import { parseUsageEvent } from '@meterline/catalog/plain';
import { checkEvent, type EventToRecord } from './event.js';

const NOON = Date.UTC(2026, 9, 1, 12, 0, 0, 7);
const USAGE: EventToRecord = {
  accountId: 'acme',
  workspace: 'production',
  resourceType: 'agent',
  resourceName: 'support',
  billingDimension: 'agent_async_requests_count',
  usage: 3,
};

function eventText(event: EventToRecord, now: number) {
  const checked = checkEvent(event, now);
  if (!checked.ok) return checked;
  const { sent } = checked.value;
  return { ok: true, value: { eventId: sent.eventId, text: JSON.stringify(sent) } } as const;
}

describe('an event that is recorded', () => {
  it('gets an id of version 7 and the time, and the worker accepts it', () => {
    const checked = eventText(USAGE, NOON);
    if (!checked.ok) throw new Error(checked.message);
    const { eventId, text } = checked.value;
    expect(eventId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
    expect(JSON.parse(text)).toEqual({ ...USAGE, eventId, timestamp: '2026-10-01T12:00:00.007Z' });
    expect(parseUsageEvent(JSON.parse(text), NOON)).toMatchObject({ ok: true, value: { eventId, timestamp: NOON } });
  });

  it('keeps its own id, time and revision', () => {
    const own = {
      eventId: '00000000-0000-7000-8000-000000000000',
      timestamp: '2026-10-01T11:00:00Z',
      revision: 2,
      void: true,
    };
    const checked = eventText({ ...USAGE, ...own }, NOON);
    expect(checked.ok && JSON.parse(checked.value.text)).toEqual({ ...USAGE, ...own });
  });

  it('is a copy: what the caller changes afterwards changes nothing', () => {
    const usage = { ...USAGE };
    const checked = eventText(usage, NOON);
    usage.usage = 99;
    expect(checked.ok && JSON.parse(checked.value.text)).toMatchObject({ usage: 3 });
  });

  it.each([
    ['invalid_usage', { usage: 1.5 }],
    ['unknown_field', { price: 1 }],
    ['dimension_mismatch', { resourceType: 'job' }],
    ['timestamp_in_future', { timestamp: '2026-10-01T12:10:01Z' }],
  ])('is rejected as the worker would refuse it: %s', (reason, changes) => {
    expect(eventText(Object.assign({ ...USAGE }, changes), NOON)).toMatchObject({ ok: false, reason });
  });
});
