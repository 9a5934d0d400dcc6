import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parseDecimalText, toScaled } from './decimal.js';
import { BILLING_DIMENSIONS, DIMENSIONS, RESOURCE_TYPES } from './dimensions.js';
import { blankEvent, parseUsage, parseUsageEvent, readEvent, rejectionOf, type UsageEvent } from './event.js';

const NOW = Date.UTC(2025, 9, 1, 12);

const EVENT = {
  eventId: '0190c5e4-7b1a-7def-8abc-0123456789ab',
  accountId: 'acme',
  workspace: 'production',
  resourceType: 'sandbox',
  resourceName: 'builder',
  resourceUuid: 'sbx-1',
  billingDimension: 'sandbox_compute_runtime_gbs',
  usage: '12.5',
  timestamp: '2025-10-01T11:22:33.456Z',
  revision: 3,
  void: true,
};

function parsed(changes: Readonly<Record<string, unknown>>): UsageEvent {
  const event = parseUsageEvent({ ...EVENT, ...changes }, NOW);
  if (!event.ok) throw new Error(`${event.reason}: ${event.message}`);
  return event.value;
}

function reasonFor(changes: Readonly<Record<string, unknown>>): string | undefined {
  const event = parseUsageEvent({ ...EVENT, ...changes }, NOW);
  return event.ok ? undefined : event.reason;
}

describe('a usage event', () => {
  it('is brought into the form that is stored', () => {
    expect(parseUsageEvent(EVENT, NOW)).toEqual({
      ok: true,
      value: {
        eventId: '0190c5e4-7b1a-7def-8abc-0123456789ab',
        accountId: 'acme',
        workspace: 'production',
        resourceType: 'sandbox',
        resourceName: 'builder',
        resourceUuid: 'sbx-1',
        billingDimension: 'sandbox_compute_runtime_gbs',
        usage: 12_500_000_000n,
        timestamp: Date.UTC(2025, 9, 1, 11, 22, 33, 456),
        revision: 3,
        voided: true,
      },
    });
  });

  it('has revision 0, no void and an empty resourceUuid unless it says otherwise', () => {
    const { resourceUuid: _uuid, revision: _revision, void: _void, ...required } = EVENT;
    const event = parseUsageEvent(required, NOW);
    expect(event).toMatchObject({ ok: true, value: { resourceUuid: '', revision: 0, voided: false } });
  });

  it.each([null, ''])('whose resourceUuid is %j has none', (resourceUuid) => {
    expect(parsed({ resourceUuid }).resourceUuid).toBe('');
  });

  it.each([[null], [undefined], [1], ['text'], [true], [[]], [[EVENT]]])('may not be %j', (input) => {
    expect(parseUsageEvent(input, NOW)).toMatchObject({ ok: false, reason: 'event_not_an_object' });
  });

  it.each([
    ...['eventId', 'accountId', 'workspace', 'resourceType', 'resourceName'],
    ...['billingDimension', 'usage', 'timestamp'],
  ])('without %s is refused, and the message names it', (field) => {
    const { [field]: _, ...rest } = EVENT as Record<string, unknown>;
    expect(parseUsageEvent(rest, NOW)).toMatchObject({
      ok: false,
      reason: 'missing_field',
      message: `${field} is missing`,
    });
  });

  it.each([
    ['eventId', 'invalid_event_id', [1, null, '', {}]],
    ['accountId', 'invalid_account_id', [1, null, '', []]],
    ['workspace', 'invalid_workspace', [1, null, '', {}]],
    ['resourceType', 'invalid_resource_type', [1, null, '', 'Sandbox', 'function']],
    ['resourceName', 'invalid_resource_name', [1, null, '', false]],
    ['resourceUuid', 'invalid_resource_uuid', [1, false, '\u0000', {}, []]],
    ['billingDimension', 'invalid_billing_dimension', [1, null, '', 'toString']],
    ['usage', 'invalid_usage', [null, true, {}, [1], '', 1n]],
    ['timestamp', 'invalid_timestamp', [1759276800000, null, '', new Date(0)]],
    ['revision', 'invalid_revision', ['1', null, true]],
    ['void', 'invalid_void', ['true', null, 0, 1]],
  ])('with a wrong %s is refused as %s', (field, reason, values) => {
    expect(values.map((value) => reasonFor({ [field]: value }))).toEqual(values.map(() => reason));
  });

  it('names all faults of shape at once; the first field in order gives the code', () => {
    expect(parseUsageEvent({ ...EVENT, workspace: '', void: 'no' }, NOW)).toEqual({
      ok: false,
      reason: 'invalid_workspace',
      message:
        'workspace must be a string of 1 to 256 characters without control characters; void must be true or false',
    });
  });
});

it('an event is accepted exactly where no rule speaks against it', () => {
  const odd = [
    undefined,
    null,
    '',
    0,
    -0,
    1.5,
    1e-7,
    -1,
    65_536,
    Number.NaN,
    '007',
    '1.0',
    '1e3',
    true,
    'x',
    '\u0000',
    {},
    [],
  ];
  const value = (valid: unknown) =>
    fc.oneof({ weight: 100, arbitrary: fc.constant(valid) }, fc.constantFrom(...odd), fc.jsonValue());
  const fields = Object.fromEntries(Object.entries(EVENT).map(([name, valid]) => [name, value(valid)]));
  const input = fc.oneof(
    fc.record({
      ...fields,
      eventId: fc.oneof(fc.uuid(), value(EVENT.eventId.toUpperCase())),
      resourceType: fc.oneof(fc.constant('agent'), fc.constantFrom(...RESOURCE_TYPES)),
      billingDimension: fc.oneof(fc.constant('agent_async_requests_count'), fc.constantFrom(...BILLING_DIMENSIONS)),
      usage: fc.oneof(fc.nat(), fc.double(), fc.stringMatching(/^\d{1,18}(\.\d{0,12})?$/), value(1)),
      timestamp: fc.oneof(
        fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
        value(EVENT.timestamp),
      ),
    }),
    fc.record({ ...fields, more: fc.constantFrom(undefined, 1) }, { requiredKeys: [] }),
    fc.jsonValue(),
  );
  let accepted = 0;
  fc.assert(
    fc.property(input, (event) => {
      const reason = rejectionOf(event, NOW);
      accepted += reason ? 0 : 1;
      expect(readEvent(event, NOW, blankEvent())).toEqual(reason);
    }),
    { numRuns: 2_000 },
  );
  expect(accepted).toBeGreaterThan(10);
});

describe('unknown fields', () => {
  it.each(['price', 'cost', 'EventId', 'event_id', 'id', '', 'constructor', 'toString', 'hasOwnProperty', 'events'])(
    '%j is refused, and the message names it',
    (field) => {
      const event = parseUsageEvent({ ...EVENT, [field]: 1 }, NOW);
      expect(event).toMatchObject({ ok: false, reason: 'unknown_field' });
      expect(event).toMatchObject({ message: expect.stringContaining(JSON.stringify(field)) });
    },
  );

  it('are named up to ten of them', () => {
    const many = Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`k${n}`, n]));
    const event = parseUsageEvent({ ...EVENT, ...many }, NOW);
    expect(event).toMatchObject({ message: expect.stringContaining('"k8", "k9" and 2 more; the fields are') });
  });

  it('__proto__ is refused as any other', () => {
    const input: unknown = JSON.parse(`${JSON.stringify(EVENT).slice(0, -1)},"__proto__":{"usage":1}}`);
    expect(parseUsageEvent(input, NOW)).toMatchObject({ ok: false, reason: 'unknown_field' });
  });
});

describe('names', () => {
  const FIELDS = ['accountId', 'workspace', 'resourceName', 'resourceUuid'];
  const REQUIRED = FIELDS.filter((field) => field !== 'resourceUuid');
  const refused = (name: string) => FIELDS.filter((field) => reasonFor({ [field]: name })?.startsWith('invalid_'));

  it.each([
    ['one character', 'a'],
    ['256 characters', 'a'.repeat(256)],
    ['256 characters beyond the Basic Multilingual Plane', '😀'.repeat(256)],
    ['one such character', '😀'],
    ['a space', ' '],
    ['quotes, backslashes and markup', `'"\\<b>{}%`],
    ['a no-break space and a line separator', '\u00a0\u2028'],
    ['the last character before the C1 controls', '\u007e'],
    ['the first character after the C1 controls', '\u00a0'],
  ])('may have %s', (_, name) => {
    expect(refused(name)).toEqual([]);
  });

  it.each([
    ['257 characters', 'a'.repeat(257)],
    ['257 characters beyond the Basic Multilingual Plane', '😀'.repeat(257)],
    ['U+0000', 'a\u0000b'],
    ['U+0009', 'a\tb'],
    ['U+001F', 'a\u001fb'],
    ['U+007F', 'a\u007fb'],
    ['U+0085', 'a\u0085b'],
    ['U+009F', 'a\u009f'],
    ['a newline at the end', 'a\n'],
    ['a lone high surrogate', 'a\ud83d'],
    ['a lone low surrogate', '\ude00a'],
    ['surrogates in the wrong order', '\ude00\ud83d'],
  ])('may not have %s', (_, name) => {
    expect(refused(name)).toEqual(FIELDS);
  });

  it('may not be empty, where there must be one', () => {
    expect(refused('')).toEqual(REQUIRED);
  });
});

describe('eventId', () => {
  it('is a UUID of any version, kept in lower case', () => {
    expect(parsed({ eventId: '0190C5E4-7B1A-4DEF-8ABC-0123456789AB' }).eventId).toBe(
      '0190c5e4-7b1a-4def-8abc-0123456789ab',
    );
    expect(parsed({ eventId: '00000000-0000-0000-0000-000000000000' }).eventId).toMatch(/^0/);
  });

  it.each([
    '0190c5e47b1a7def8abc0123456789ab',
    '{0190c5e4-7b1a-7def-8abc-0123456789ab}',
    'urn:uuid:0190c5e4-7b1a-7def-8abc-0123456789ab',
    '0190c5e4-7b1a-7def-8abc-0123456789a',
    '0190c5e4-7b1a-7def-8abc-0123456789abc',
    '0190c5e4-7b1a-7def-8abc-0123456789ag',
    '0190c5e4-7b1a-7def-8abc-0123456789ab\n',
  ])('is not %j', (eventId) => {
    expect(reasonFor({ eventId })).toBe('invalid_event_id');
  });
});

describe('billingDimension', () => {
  it.each(RESOURCE_TYPES)('is accepted on a %s only if it belongs to it', (resourceType) => {
    for (const billingDimension of BILLING_DIMENSIONS) {
      const belongs = billingDimension.startsWith(`${resourceType}_`);
      expect(reasonFor({ resourceType, billingDimension, usage: 1 })).toBe(belongs ? undefined : 'dimension_mismatch');
    }
  });

  it('that does not belong is refused with a message that names the right type', () => {
    expect(parseUsageEvent({ ...EVENT, resourceType: 'job' }, NOW)).toMatchObject({
      message: 'billingDimension sandbox_compute_runtime_gbs belongs to resourceType sandbox, not to job',
    });
  });
});

describe('usage', () => {
  it.each([
    [0, 0n],
    [-0, 0n],
    ['0', 0n],
    [0.1 + 0.2, 300_000_000n],
    ['0.1234567885', 123_456_788n],
    ['0.1234567895', 123_456_790n],
    [1e-10, 0n],
    ['000012.5', 12_500_000_000n],
    [999_999_999_999_999, 999_999_999_999_999_000_000_000n],
    ['999999999999999.999999999', 999_999_999_999_999_999_999_999n],
    ['000999999999999999', 999_999_999_999_999_000_000_000n],
    ['123456789012345.123456789', 123_456_789_012_345_123_456_789n],
  ])('%p is kept as %p billionths', (usage, expected) => {
    expect(parsed({ usage }).usage).toBe(expected);
  });

  it.each([
    ...[-1, -1e-12, 1e15, 1e21, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
    ...['-1', '-0', '+1', '1e3', '1e-3', ' 1', '1 ', '', '.5', '5.', 'NaN', 'Infinity', '1,5'],
    ...['1000000000000000', '1000000000000000.0', '9'.repeat(1000)],
  ])('%p is refused', (usage) => {
    expect(reasonFor({ usage })).toBe('invalid_usage');
  });
});

describe('usage of a count dimension', () => {
  const COUNT = Object.entries(DIMENSIONS).filter(([, { unit }]) => unit === 'count');
  const count = { resourceType: 'agent', billingDimension: 'agent_async_requests_count' };

  it('concerns asynchronous requests alone', () => {
    expect(COUNT.map(([name]) => name)).toEqual(['agent_async_requests_count']);
  });

  it.each([0, 1, '1', '1.0', '1.000000000000', 1e14, '007'])('may be %p', (usage) => {
    expect(reasonFor({ ...count, usage })).toBeUndefined();
  });

  it.each([1.5, '1.5', 1e-10, '0.0000000000001', 0.1, '1.00000000000000000001'])('may not be %p', (usage) => {
    expect(reasonFor({ ...count, usage })).toBe('invalid_usage');
  });
});

describe('timestamp and revision', () => {
  it.each([
    [{ timestamp: '1970-01-01T00:00:00Z' }, undefined],
    [{ timestamp: '1969-12-31T23:59:59.999Z' }, 'invalid_timestamp'],
    [{ timestamp: '2025-10-01T11:00:00+01:00' }, 'invalid_timestamp'],
    [{ timestamp: '2025-10-01T12:10:00.000Z' }, undefined],
    [{ timestamp: '2025-10-01T12:10:00.001Z' }, 'timestamp_in_future'],
    ...[0, 1, 65_535].map((revision) => [{ revision }, undefined] as const),
    ...[-1, 65_536, 1.5, Number.NaN, Number.POSITIVE_INFINITY].map(
      (revision) => [{ revision }, 'invalid_revision'] as const,
    ),
  ])('with %j the reason is %s', (changes, reason) => {
    expect(reasonFor(changes)).toBe(reason);
  });

  it('cuts a timestamp to the millisecond', () => {
    expect(parsed({ timestamp: '2025-10-01T11:00:00.123999999Z' }).timestamp).toBe(Date.UTC(2025, 9, 1, 11, 0, 0, 123));
  });
});

describe('parseUsage', () => {
  it('rounds decimal text half-even to nine decimals, whatever its digits', () => {
    const decimals = fc.stringMatching(/^\d{1,15}(\.\d{1,12})?$/);
    fc.assert(
      fc.property(decimals, (text) => {
        const digits = parseDecimalText(text);
        const expected = digits && toScaled(digits, 9);
        expect(parseUsage('volume_storage_gbs', text)).toEqual({ ok: true, value: expected });
      }),
    );
  });
});
