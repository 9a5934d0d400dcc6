/** The comparison must find every kind of difference; otherwise a passing round would prove nothing. */
import { describe, expect, it } from '@jest/globals';
import type { UsageEventInput } from '@meterline/catalog';
import { Oracle } from '../oracle/model.js';
import { compareEntries, entriesOf, eventByEvent } from './accepted-events.js';
import { streamWindow } from './stream.js';

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
