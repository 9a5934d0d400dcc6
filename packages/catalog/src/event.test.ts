import { readFile } from 'node:fs/promises';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { understand } from '../../../test/oracle/event-rules.js';
import { parseJson } from './api/exact-json.js';
import { NOT_ALLOWED } from './api/receipt.js';
import { BUILT_IN_DIMENSION_NAMES, BUILT_IN_RESOURCE_TYPES } from './dimensions.js';
import { parseUsage, parseUsageEvent, rejectionOf } from './event.js';
import { payloadOf, REJECTION_REASONS } from './rejection.js';

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
type Changes = Readonly<Record<string, unknown>>;
const parsed = (changes: Changes) => parseUsageEvent({ ...EVENT, ...changes }, NOW);

const deepArray = () => {
  let value: unknown = [];
  for (let depth = 0; depth < 20_000; depth += 1) value = [value];
  return value;
};

it.each(Object.keys(EVENT))('a %s that cannot be converted to a string is rejected', (field) => {
  const event = { ...EVENT, resourceType: 'agent', billingDimension: 'agent_async_requests_count', usage: 1 };
  for (const value of [{ toString: 1 }, { toJSON: 1, valueOf: 2 }, deepArray()]) {
    expect(parseUsageEvent({ ...event, [field]: value }, NOW).ok).toBe(false);
  }
});

/** By the rules that the oracle and the fuzz go by too, which share no code with these. */
function expected(event: unknown) {
  const understood = understand(event, NOW);
  return understood && { ...understood, ...understood.payload, payload: undefined };
}

const NAMES = ['a', 'a'.repeat(256), '😀'.repeat(256), '😀', ' ', `'"\\<b>{}%`, '\u00a0\u2028', '\u007e', '\u00a0'];
const NO_NAMES = [
  ...['a'.repeat(257), '😀'.repeat(257), 'a\u0000b', 'a\tb', 'a\u001fb', 'a\u007fb', 'a\u0085b', 'a\u009f', 'a\n'],
  ...['a\ud83d', '\ude00a', '\ude00\ud83d', 1, false, [], {}],
];
const ID = EVENT.eventId;
const NO_IDS = [
  ...[
    ID.replaceAll('-', ''),
    `{${ID}}`,
    `urn:uuid:${ID}`,
    ID.slice(1),
    `${ID}c`,
    `${ID.slice(1)}g`,
    `${ID}\n`,
    1,
    null,
    '',
  ],
];
const USAGES = [
  ...[0, -0, '0', 0.1 + 0.2, 1e-10, '0.1234567885', '0.1234567895', '000012.5', 999_999_999_999_999],
  ...['999999999999999.999999999', '000999999999999999', '123456789012345.123456789'],
];
const NO_USAGES = [
  ...[-1, -1e-12, 1e15, 1e21, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, null, true, {}, [1], 1n],
  ...['-1', '-0', '+1', '1e3', '1e-3', ' 1', '1 ', '', '.5', '5.', 'NaN', 'Infinity', '1,5'],
  ...['1000000000000000', '1000000000000000.0', '9'.repeat(1000)],
];
const COUNTS = [0, 1, '1', '1.0', '1.000000000000', 1e14, '007'];
const NO_COUNTS = [1.5, '1.5', 1e-10, '0.0000000000001', 0.1, '1.00000000000000000001'];
const INSTANTS = ['1970-01-01T00:00:00Z', '2025-10-01T12:10:00.000Z', '2025-10-01T11:00:00.123999999Z'];
const NO_INSTANTS = ['1969-12-31T23:59:59.999Z', '2025-10-01T11:00:00+01:00', 1759276800000, null, '', new Date(0)];
const AHEAD = ['2025-10-01T12:10:00.001Z', '9999-12-31T00:00:00Z'];
const NO_REVISIONS = [-1, 65_536, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '1', null, true];
const NO_DIMENSIONS = [1, null, '', 'toString', '__proto__'];

const of = (field: string) => (value: unknown) => ({ [field]: value });
const ofCount = (usage: unknown) => ({ resourceType: 'agent', billingDimension: 'agent_async_requests_count', usage });

describe('a usage event', () => {
  it('a usage event is converted into its stored form', () => {
    const { void: voided, ...rest } = EVENT;
    const timestamp = Date.UTC(2025, 9, 1, 11, 22, 33, 456);
    expect(parsed({})).toEqual({ ok: true, value: { ...rest, voided, usage: 12_500_000_000n, timestamp } });
  });

  it.each([[null], [undefined], [1], ['text'], [true], [[]], [[EVENT]]])('a usage event may not be %j', (input) => {
    expect(parseUsageEvent(input, NOW)).toMatchObject({ ok: false, reason: 'event_not_an_object' });
  });

  it.each<[string, (value: unknown) => Changes, readonly unknown[], readonly unknown[]]>([
    ['invalid_event_id', of('eventId'), [ID.toUpperCase(), '00000000-0000-0000-0000-000000000000'], NO_IDS],
    ['invalid_account_id', of('accountId'), NAMES, [...NO_NAMES, '', null]],
    ['invalid_workspace', of('workspace'), NAMES, [...NO_NAMES, '', null]],
    ['invalid_resource_type', of('resourceType'), [], [1, null, '', 'Sandbox', 'function']],
    ['invalid_resource_name', of('resourceName'), NAMES, [...NO_NAMES, '', null]],
    ['invalid_resource_uuid', of('resourceUuid'), [...NAMES, '', null, undefined], NO_NAMES],
    ['invalid_billing_dimension', of('billingDimension'), ['sandbox_image_storage_gbs'], NO_DIMENSIONS],
    ['invalid_usage', of('usage'), USAGES, NO_USAGES],
    ['invalid_usage', ofCount, COUNTS, NO_COUNTS],
    ['invalid_timestamp', of('timestamp'), INSTANTS, NO_INSTANTS],
    ['timestamp_in_future', of('timestamp'), [], AHEAD],
    ['invalid_revision', of('revision'), [0, 1, 65_535, undefined], NO_REVISIONS],
    ['invalid_void', of('void'), [true, false, undefined], ['true', null, 0, 1]],
  ])(
    'a usage event is rejected as %s where a value is wrong, and stored as its rule says else',
    (reason, change, good, bad) => {
      expect(bad.map((value) => parsed(change(value)))).toMatchObject(bad.map(() => ({ ok: false, reason })));
      expect(good.map((value) => parsed(change(value)))).toEqual(
        good.map((value) => ({ ok: true, value: expected({ ...EVENT, ...change(value) }) })),
      );
    },
  );

  it.each<[string, unknown, string]>([
    ['usage', -1, 'without an exponent (got -1)'],
    ['usage', '1,5', 'without an exponent (got "1,5")'],
    ['usage', '\u202e\u009b1', 'without an exponent (got "\\u202e\\u009b1")'],
    ['usage', '9'.repeat(1_000_000), `without an exponent (got "${'9'.repeat(80)}…")`],
    ['usage', {}, 'without an exponent'],
    ['workspace', 'a\tb', 'without control characters (got "a\\tb")'],
    ['timestamp', 'noon', 'such as 2025-10-01T00:00:00Z (got "noon")'],
    ['timestamp', '2025-10-01T13:00:00Z', 'the clock, which shows 2025-10-01T12:00:00Z (got "2025-10-01T13:00:00Z")'],
  ])('the rejection of an event ends with the value of %s', (field, value, end) => {
    const { message } = rejectionOf({ ...EVENT, [field]: value }, NOW) ?? {};
    expect(message?.slice(-end.length)).toBe(end);
  });

  it.each(BUILT_IN_RESOURCE_TYPES)(
    'a usage event of a %s may have the billing dimensions of that type alone',
    (resourceType) => {
      for (const billingDimension of BUILT_IN_DIMENSION_NAMES) {
        const belongs = billingDimension.startsWith(`${resourceType}_`);
        const event = parsed({ resourceType, billingDimension, usage: 1 });
        expect(event).toMatchObject(belongs ? { ok: true } : { ok: false, reason: 'dimension_mismatch' });
      }
    },
  );

  it('a usage event is accepted if and only if it breaks no rule, with the values of the model', () => {
    const odd = [
      ...[undefined, null, '', 0, -0, 1.5, 1e-7, -1, 65_536, Number.NaN, '007', '1.0', '1e3', true, 'x', '\u0000'],
      ...[{}, []],
    ];
    const value = (valid: unknown) =>
      fc.oneof({ weight: 100, arbitrary: fc.constant(valid) }, fc.constantFrom(...odd), fc.jsonValue());
    const fields = Object.fromEntries(Object.entries(EVENT).map(([name, valid]) => [name, value(valid)]));
    const input = fc.oneof(
      fc.record({
        ...fields,
        eventId: fc.oneof(fc.uuid(), value(ID.toUpperCase())),
        resourceType: fc.oneof(fc.constant('agent'), fc.constantFrom(...BUILT_IN_RESOURCE_TYPES)),
        billingDimension: fc.oneof(
          fc.constant('agent_async_requests_count'),
          fc.constantFrom(...BUILT_IN_DIMENSION_NAMES),
        ),
        usage: fc.oneof(fc.nat(), fc.double(), fc.stringMatching(/^\d{1,15}(\.\d{1,12})?$/), value(1)),
        timestamp: fc.oneof(
          fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
          value(EVENT.timestamp),
        ),
      }),
      fc.record({ ...fields, usage: fc.stringMatching(/^\d{1,15}(\.\d{1,12})?$/) }),
      fc.record({ ...fields, more: fc.constantFrom(null, 1) }, { requiredKeys: [] }),
      fc.jsonValue(),
    );
    let accepted = 0;
    fc.assert(
      fc.property(input, (event) => {
        const reason = rejectionOf(event, NOW);
        const read = parseUsageEvent(event, NOW);
        expect(read).toEqual(reason ?? { ok: true, value: expected(event) });
        expect(expected(event) === undefined).toBe(reason !== undefined);
        if (!read.ok) return;
        accepted += 1;
        const { billingDimension, usage } = read.value;
        expect(parseUsage(billingDimension, Object(event).usage)).toEqual({ ok: true, value: usage });
      }),
      { numRuns: 2_000 },
    );
    expect(accepted).toBeGreaterThan(100);
  });
});

const FIELDS = Object.keys(EVENT).join(', ');

describe('the message of a rejection', () => {
  it.each([
    ...['eventId', 'accountId', 'workspace', 'resourceType', 'resourceName'],
    ...['billingDimension', 'usage', 'timestamp'],
  ])('the message of a rejection names %s when it is missing', (field) => {
    expect(parsed({ [field]: undefined })).toMatchObject({ reason: 'missing_field', message: `${field} is missing` });
  });

  it.each(['price', 'EventId', 'event_id', '', 'constructor', 'toString', 'hasOwnProperty', '__proto__'])(
    'the message of a rejection names the unknown field %j, and those that there are',
    (field) => {
      const input: unknown = JSON.parse(`${JSON.stringify(EVENT).slice(0, -1)},${JSON.stringify(field)}:1}`);
      const message = `unknown field ${JSON.stringify(field)}; the fields are ${FIELDS}`;
      expect(parseUsageEvent(input, NOW)).toEqual({ ok: false, reason: 'unknown_field', message });
    },
  );

  it('the message of a rejection names up to ten unknown fields', () => {
    const many = Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`k${n}`, n]));
    expect(parsed(many)).toMatchObject({ message: expect.stringContaining('"k8", "k9" and 2 more; the fields are') });
  });

  it('the message of a rejection names all errors of shape at once; the first field in order gives the code', () => {
    const name = 'must be a string of 1 to 256 characters without control characters';
    const message = `workspace ${name} (got ""); void must be true or false (got "no")`;
    expect(parsed({ workspace: '', void: 'no' })).toEqual({ ok: false, reason: 'invalid_workspace', message });
  });

  it('the message of a rejection names the right type of a billing dimension', () => {
    const message = 'billingDimension sandbox_compute_runtime_gbs belongs to resourceType sandbox, not to job';
    expect(parsed({ resourceType: 'job' })).toMatchObject({ message });
  });
});

it('the guide names every reason code, by which operators filter and alert, and no other', async () => {
  const guide = await readFile(new URL('../../../docs/guides/emitting.md', import.meta.url), 'utf8');
  const [, table = ''] = /^## Why events are rejected\n(.*?)^## /ms.exec(guide) ?? [];
  const codes = [...table.matchAll(/^\| (`\w+`(?:, `\w+`)*) \|/gm)].flatMap(
    ([, names = '']) => names.match(/\w+/g) ?? [],
  );
  // What never reaches a worker is the collector's alone.
  expect(codes.sort()).toEqual([...REJECTION_REASONS, 'invalid_cloud_event', NOT_ALLOWED].sort());
});

it.each([
  [{ usage: -1, text: 'é' }, '{"usage":-1,"text":"é"}'],
  [JSON.parse('{"usage":1e999,"other":[-1e999]}'), '{"usage":"Infinity","other":["-Infinity"]}'],
])(
  'the payload of a rejected event is its JSON text, with numbers too large for a double as text (case %#)',
  (input, text) => {
    expect(payloadOf(input)).toBe(text);
  },
);

it('the payload of a rejected event is undefined if the event is nested deeper than the stack', () => {
  expect(payloadOf(JSON.parse(`${'['.repeat(50_000)}${']'.repeat(50_000)}`))).toBeUndefined();
});

it('parseJson returns undefined for a text that is not JSON', () => {
  expect(['{"usage":1}', 'null', '{"usage":', ''].map(parseJson)).toEqual([{ usage: 1 }, null, undefined, undefined]);
});
