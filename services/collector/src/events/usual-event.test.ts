import { describe, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK, DIMENSIONS, eventsOfJob, parseJson, parsePricedEvent } from '@meterline/catalog';
import fc from 'fast-check';
import { JobMaker } from '../../../../test/attack/job-cases.js';
import { SeededRandom } from '../../../../test/faults/seeded-random.js';
import { SANDBOX_EVENT } from '../../../../test/sandbox-event.js';
import { isUsualEvent } from './usual-event.js';

const RUNS = process.env.METERLINE_TEST_SHORT ? 500 : 5_000;
const NOW = Date.UTC(2026, 5, 1);
const RULES = { account: 'acme', book: DEFAULT_PRICE_BOOK, now: NOW };
const EVENT = { ...SANDBOX_EVENT, usage: 12.5 };

/** @returns whether the event is usual; none is that the worker refuses */
function isUsual(event: Readonly<Record<string, unknown>>): boolean {
  const usual = isUsualEvent(event, RULES);
  if (!usual) return false;
  expect({ event, accepted: parsePricedEvent(event, DEFAULT_PRICE_BOOK, NOW).ok }).toEqual({ event, accepted: true });
  expect(event['accountId']).toBe(RULES.account);
  return true;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

describe('a usual event is one that the worker accepts:', () => {
  it('events that fit, that nearly fit, and hostile ones', () => {
    const maker = new JobMaker(new SeededRandom(27), { accounts: ['acme', 'ünï'], now: NOW });
    let [usual, all] = [0, 0];
    for (let job = 0; job < 80; job += 1) {
      const events = eventsOfJob(parseJson(JSON.stringify(maker.data(20))));
      for (const event of events.ok ? events.value : []) {
        if (!isRecord(event)) continue;
        all += 1;
        if (isUsual(event)) usual += 1;
      }
    }
    // Both ways must have been tried often.
    expect(usual).toBeGreaterThan(all / 20);
    expect(usual).toBeLessThan(all);
  });

  it('any usage, timestamp, revision and name', () => {
    const change = fc.record(
      {
        usage: fc.oneof(fc.double(), fc.integer(), fc.stringMatching(/^-?\d{0,20}(\.\d{0,22})?(e\d)?$/), fc.anything()),
        timestamp: fc.oneof(
          fc
            .date({ noInvalidDate: true, min: new Date(-1e12), max: new Date(NOW + 1e9) })
            .map((at) => at.toISOString()),
          fc.string(),
        ),
        revision: fc.oneof(fc.integer({ min: -2, max: 65_540 }), fc.double(), fc.anything()),
        void: fc.anything(),
        workspace: fc.oneof(fc.string({ unit: 'binary' }), fc.string({ minLength: 250, maxLength: 260 })),
        resourceUuid: fc.oneof(fc.string({ unit: 'binary' }), fc.constant(null)),
        eventId: fc.oneof(fc.uuid(), fc.string()),
        more: fc.anything(),
      },
      { requiredKeys: [] },
    );
    const type = fc.constantFrom(...Object.entries(DIMENSIONS));
    fc.assert(
      fc.property(type, change, ([billingDimension, { resourceType }], changes) => {
        isUsual({ ...EVENT, billingDimension, resourceType, ...changes });
      }),
      { numRuns: RUNS },
    );
  });
});

describe('what producers send is usual:', () => {
  it.each([
    ['the least that an event has', {}],
    ['all fields', { resourceUuid: 'sbx-1', revision: 3, void: true }],
    ['a usage as text', { usage: '0.000000001' }],
    ['a whole number of requests', { resourceType: 'agent', billingDimension: 'agent_async_requests_count', usage: 7 }],
  ])('%s', (_, change) => {
    expect(isUsual({ ...EVENT, ...change })).toBe(true);
  });

  it.each([
    ['of another account', { accountId: 'globex' }],
    ['an unknown field', { price: 1 }],
    ['half a request', { resourceType: 'agent', billingDimension: 'agent_async_requests_count', usage: 0.5 }],
    ['a field that is missing', { workspace: undefined }],
  ])('%s is not', (_, change) => {
    expect(isUsual({ ...EVENT, ...change })).toBe(false);
  });
});
