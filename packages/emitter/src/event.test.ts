import { expect, it } from '@jest/globals';
import { parseUsageEvent } from '@meterline/catalog/plain';
import { USAGE } from '../../../test/emitter/fixture.js';
import { checkEvent, type EventToRecord } from './event.js';

const NOON = Date.UTC(2026, 9, 1, 12, 0, 0, 7);

/** As it is sent. */
function jsonOf(event: EventToRecord) {
  const checked = checkEvent(event, NOON);
  if (!checked.ok) throw new Error(checked.message);
  return JSON.parse(JSON.stringify(checked.value.sent));
}

it('an event that is recorded gets an id of version 7 and the time, and the worker accepts it', () => {
  const sent = jsonOf(USAGE);
  const { eventId } = sent;
  expect(eventId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  expect(sent).toEqual({ ...USAGE, eventId, timestamp: '2026-10-01T12:00:00.007Z' });
  expect(parseUsageEvent(sent, NOON)).toMatchObject({ ok: true, value: { eventId, timestamp: NOON } });
});

it('an event that is recorded keeps its own id, time and revision', () => {
  const eventId = '00000000-0000-7000-8000-000000000000';
  const own = { eventId, timestamp: '2026-10-01T11:00:00Z', resourceUuid: '1', revision: 2, void: true };
  expect(jsonOf({ ...USAGE, ...own })).toEqual({ ...USAGE, ...own });
});

it('an event that is recorded is a copy: what the caller changes afterwards changes nothing', () => {
  const usage = { ...USAGE };
  const checked = checkEvent(usage, NOON);
  usage.usage = 99;
  expect(checked).toMatchObject({ ok: true, value: { sent: { usage: 1 } } });
});

it.each([
  ['invalid_usage', { usage: 1.5 }],
  ['unknown_field', { price: 1 }],
  ['dimension_mismatch', { resourceType: 'job' }],
  ['timestamp_in_future', { timestamp: '2026-10-01T12:10:01Z' }],
])('an event that the worker would reject is rejected as %s', (reason, changes) => {
  expect(checkEvent(Object.assign({ ...USAGE }, changes), NOON)).toMatchObject({ ok: false, reason });
});
