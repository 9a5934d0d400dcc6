import { describe, expect, it } from '@jest/globals';
import { eventsOfJob, QUEUE_NAME, QUEUE_PREFIX } from './queue.js';

function reasonFor(data: unknown): string | undefined {
  const events = eventsOfJob(data);
  return events.ok ? undefined : events.reason;
}

describe('a job on the queue', () => {
  it('lies in usage-events, under the prefix of BullMQ', () => {
    expect([QUEUE_NAME, QUEUE_PREFIX]).toEqual(['usage-events', 'bull']);
  });

  it('may be one event', () => {
    const event = { eventId: 'e' };
    expect(eventsOfJob(event)).toEqual({ ok: true, value: [event] });
  });

  it('may be a list of events, good and bad ones alike', () => {
    const events = [{ eventId: 'e' }, 'not an event', null];
    expect(eventsOfJob({ events })).toEqual({ ok: true, value: events });
  });

  it('may hold 5,000 events', () => {
    expect(reasonFor({ events: new Array(5_000).fill({}) })).toBeUndefined();
  });

  it('may not hold 5,001', () => {
    expect(reasonFor({ events: new Array(5_001).fill({}) })).toBe('job_too_large');
  });

  it('may not hold none', () => {
    expect(reasonFor({ events: [] })).toBe('job_empty');
  });

  it.each([[null], [undefined], ['text'], [1], [true], [[]], [[{}]]])('may not be %j', (data) => {
    expect(reasonFor(data)).toBe('job_not_an_object');
  });

  it.each([[null], ['text'], [{}], [1]])('may not have %j for its events', (events) => {
    expect(reasonFor({ events })).toBe('job_invalid');
  });

  it('may not have another field beside its events, and the message names it', () => {
    expect(eventsOfJob({ events: [{}], tenant: 'a' })).toEqual({
      ok: false,
      reason: 'job_invalid',
      message: 'beside "events" a job holds no other field, but this one has tenant',
    });
  });
});
