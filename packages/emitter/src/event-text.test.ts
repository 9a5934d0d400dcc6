import { describe, expect, it } from '@jest/globals';
import { isName, parseUsageEvent } from '@meterline/catalog/events';
import fc from 'fast-check';
import { checkEvent, type EventToRecord, jsonOf, uuidV7 } from './event-text.js';

const NOON = Date.UTC(2026, 9, 1, 12, 0, 0, 7);
const USAGE: EventToRecord = {
  accountId: 'acme',
  workspace: 'production',
  resourceType: 'agent',
  resourceName: 'support',
  billingDimension: 'agent_async_requests_count',
  usage: 3,
};

const COMPUTE: EventToRecord = { ...USAGE, billingDimension: 'agent_compute_runtime_gbs' };

function eventText(event: EventToRecord, now: number) {
  const checked = checkEvent(event, now);
  if (!checked.ok) return checked;
  const { sent } = checked.value;
  return { ok: true, value: { eventId: sent.eventId, text: jsonOf(sent) } } as const;
}

describe('uuidV7', () => {
  it('begins with the time, then the version, then 74 random bits', () => {
    // 2022-02-22T19:22:22Z is the example of RFC 9562, appendix A.6.
    expect(uuidV7(1_645_557_742_000)).toMatch(/^017f22e2-79b0-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  it('differs each time, and sorts by time', () => {
    const ids = Array.from({ length: 1_000 }, () => uuidV7(NOON));
    expect(new Set(ids).size).toBe(1_000);
    expect([uuidV7(NOON + 1), uuidV7(NOON)].sort()[0]?.slice(0, 13)).toBe(uuidV7(NOON).slice(0, 13));
  });
});

describe('an event that is recorded', () => {
  it('gets an id and the time, and the worker accepts it', () => {
    const checked = eventText(USAGE, NOON);
    if (!checked.ok) throw new Error(checked.message);
    const { eventId, text } = checked.value;
    expect(JSON.parse(text)).toEqual({ ...USAGE, eventId, timestamp: '2026-10-01T12:00:00.007Z' });
    expect(parseUsageEvent(JSON.parse(text), NOON)).toMatchObject({ ok: true, value: { eventId, timestamp: NOON } });
  });

  it('keeps its own id, time and revision', () => {
    const own = { eventId: uuidV7(0), timestamp: '2026-10-01T11:00:00Z', revision: 2, void: true };
    const checked = eventText({ ...USAGE, ...own }, NOON);
    expect(checked.ok && JSON.parse(checked.value.text)).toEqual({ ...USAGE, ...own });
  });

  it('says in JSON exactly what it was given, whatever is in its names', () => {
    const name = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }).filter((text) => isName(text));
    const odd = fc.oneof(name, fc.constantFrom('"', '\\', '\\"', '","void":true,"x":"', '\u2028', '</script>', '🎈'));
    const usage = fc.oneof(fc.constantFrom('007.50', '0.000000001', 1e-7, 0.1, 0, -0, 123456789012345), fc.nat());
    const given = fc.record({ accountId: odd, workspace: odd, resourceName: odd, resourceUuid: odd, usage });
    fc.assert(
      fc.property(given, fc.nat({ max: 9 }), fc.boolean(), (fields, revision, isVoid) => {
        const event: EventToRecord = { ...COMPUTE, ...fields, revision, void: isVoid };
        const checked = eventText(event, NOON);
        if (!checked.ok) throw new Error(checked.message);
        const { eventId, text } = checked.value;
        const sent = { ...event, eventId, timestamp: '2026-10-01T12:00:00.007Z' };
        expect(parseUsageEvent(JSON.parse(text), NOON)).toEqual(parseUsageEvent(sent, NOON));
      }),
    );
  });

  it.each([null, '', undefined])('has no resourceUuid when it is %j', (resourceUuid) => {
    const checked = eventText({ ...USAGE, resourceUuid }, NOON);
    expect(checked.ok && JSON.parse(checked.value.text)).not.toHaveProperty('resourceUuid');
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
  ])('is refused as the worker would refuse it: %s', (reason, changes) => {
    expect(eventText(Object.assign({ ...USAGE }, changes), NOON)).toMatchObject({ ok: false, reason });
  });
});
