/** What is sent: values that fit, that nearly fit, and hostile ones, which fast-check makes smaller when they break something. */
import { BILLING_DIMENSIONS, DIMENSIONS, RESOURCE_TYPES } from '@meterline/catalog';
import * as fc from 'fast-check';

const MINUTE = 60_000;
const DAY = 86_400_000;

/** The usual, and once in so many times the odd. */
export function mostly<T>(times: number, usual: fc.Arbitrary<T>, odd: fc.Arbitrary<T>): fc.Arbitrary<T> {
  return fc.oneof({ arbitrary: usual, weight: times - 1 }, { arbitrary: odd, weight: 1 });
}

/** Texts that have broken services before, and any other. `string` itself gives `__proto__`, `toString` and their like. */
export const hostileText: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.constantFrom('a', '😀').chain((one) => fc.constantFrom(256, 257, 3_000).map((times) => one.repeat(times))),
  fc.double().map(String),
  fc.constantFrom('', ' ', '+', '007', '0x10', '٣', '99999999999999999999999', 'null', 'true', '[]', '{x: String}'),
  fc.constantFrom(...'..|./|//|\\|%|%00|%2e%2e%2f|*|?|#|&|=|\u0000|\r\nX-Injected: 1'.split('|')),
  fc.constantFrom(
    ...'\u0085|\u2028|\u202eleft|\ufeff|\ufffd'.split('|'),
    "' OR 1=1 --",
    '$' + '{jndi:ldap://127.0.0.1/x}',
  ),
);

/** Names that are allowed. */
const name = fc.constantFrom(
  ...['main', 'box', 'ünï', '名前', ' ', "'", '\\', '__proto__'],
  '😀'.repeat(256),
  'a'.repeat(256),
);

/** Texts of instants, as events and windows have them: real ones, and texts that only look like one. */
export const oddInstant = fc.constantFrom(
  ...['1970-01-01T00:00:00Z', '1969-12-31T23:59:59.999Z', '0001-01-01T00:00:00Z', '0000-01-01T00:00:00Z'],
  ...['2024-02-29T12:00:00Z', '2025-02-29T12:00:00Z', '2025-13-01T00:00:00Z', '2025-10-01T24:00:00Z'],
  ...['1999-12-31T23:59:60Z', '9999-12-31T23:59:59Z', '2100-12-31T23:59:59.999Z', '+012025-10-01T00:00:00Z'],
  ...['2025-10-01T00:00:00+00:00', '2025-10-01T00:00:00-00:00', '2025-10-01T00:00:00+01:00', '2025-10-01t00:00:00z'],
  ...['2025-10-01T00:00:00 00:00', '2025-10-01 00:00:00Z', '2025-10-01', '2025-10-01T00:00:00', '20251001T000000Z'],
  ...['2025-10-01T00:00:00.Z', '2025-10-01T00:00:00.123456789Z', '2025-10-01T00:00:00.1234567891Z'],
);

const oddUsage = fc.oneof(
  fc.double(),
  fc.bigInt({ min: 0n, max: 10n ** 17n }).map(String),
  fc.stringMatching(/^[0-9]{0,16}\.?[0-9]{0,12}$/),
  fc.constantFrom(0.1 + 0.2, 1e-10, 5e-10, 1.5e-9, 999_999_999_999_999, 1e15, -0, -1e-20),
  fc.constantFrom('1e3', '-0', '+1', ' 1', '1,5', '٣', `1${'0'.repeat(400)}`, `0.${'0'.repeat(5_000)}1`),
);
const stranger: fc.Arbitrary<unknown> = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constant({ events: [] }));
const text: fc.Arbitrary<unknown> = fc.oneof(hostileText, fc.constantFrom('\ud800', 'a\udfff'), stranger);
const VALUES: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  eventId: fc.oneof(
    text,
    fc
      .uuid()
      .chain((id) => fc.constantFrom(id.toUpperCase(), id.slice(1), id.replaceAll('-', ''), `{${id}}`, `${id}\n`)),
  ),
  workspace: text,
  resourceType: fc.oneof(fc.constantFrom(...RESOURCE_TYPES, 'Sandbox', 'constructor'), stranger),
  resourceName: text,
  resourceUuid: text,
  billingDimension: fc.oneof(fc.constantFrom(...BILLING_DIMENSIONS, 'toString', '__proto__'), stranger),
  usage: fc.oneof<fc.Arbitrary<unknown>[]>(oddUsage, stranger),
  timestamp: fc.oneof<fc.Arbitrary<unknown>[]>(oddInstant, stranger, fc.nat()),
  revision: fc.oneof<fc.Arbitrary<unknown>[]>(fc.integer({ min: -1, max: 65_536 }), fc.double(), stranger),
  void: fc.oneof<fc.Arbitrary<unknown>[]>(fc.boolean(), stranger),
  label: stranger,
  EventId: text,
  constructor: stranger,
};

export type Event = Record<string, unknown>;

/** An event that fits. Ids are few, so that copies, revisions and voids of an event meet. */
export function goodEvent(accounts: readonly string[], now: number): fc.Arbitrary<Event> {
  const id = fc.nat(30).map((n) => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`);
  const instant = fc.oneof(
    fc.constantFrom(now - DAY, now - 40 * DAY),
    fc.integer({ min: now - 60 * DAY, max: now + 9 * MINUTE }),
  );
  return fc
    .record(
      {
        ...{ eventId: mostly(3, id, fc.uuid()), accountId: fc.constantFrom(...accounts) },
        ...{ workspace: name, resourceName: name, resourceUuid: name },
        ...{ billingDimension: fc.constantFrom(...BILLING_DIMENSIONS), usage: fc.nat(1_000_000) },
        ...{ timestamp: instant.map((at) => new Date(at).toISOString()), revision: fc.nat(5), void: fc.boolean() },
      },
      {
        requiredKeys: [
          ...(['eventId', 'accountId', 'workspace', 'resourceName', 'billingDimension', 'usage', 'timestamp'] as const),
        ],
      },
    )
    .map((event) => {
      const { resourceType, unit } = DIMENSIONS[event.billingDimension];
      const { usage } = event;
      const amounts = [usage, usage / 1_000, `${usage}.${usage}`];
      return { ...event, resourceType, usage: unit === 'count' ? usage : amounts[usage % amounts.length] };
    });
}

/** An event; one in three has a field that does not fit, or lacks one. */
function event(accounts: readonly string[], now: number): fc.Arbitrary<Event> {
  const good = goodEvent(accounts, now);
  const spoiled = fc
    .tuple(good, fc.constantFrom(...Object.keys(VALUES)), fc.nat(9))
    .chain(([base, field, lot]) =>
      lot === 0
        ? fc.constant(Object.fromEntries(Object.entries(base).filter(([key]) => key !== field)))
        : (VALUES[field] ?? stranger).map((value) => ({ ...base, [field]: value })),
    );
  return mostly(3, good, spoiled);
}

/** The data of a job, or what a body has: about so many events at most, and anything that JSON can write. */
export function eventData(accounts: readonly string[], now: number, most: number): fc.Arbitrary<unknown> {
  const one = event(accounts, now);
  const list = fc.array(mostly<unknown>(50, one, stranger), { minLength: 1, maxLength: most, size: 'max' });
  return fc.oneof<fc.WeightedArbitrary<unknown>[]>(
    { weight: 28, arbitrary: list.map((events) => ({ events })) },
    { weight: 7, arbitrary: one },
    { weight: 1, arbitrary: fc.tuple(one) },
    { weight: 2, arbitrary: stranger },
    { weight: 1, arbitrary: stranger.map((events) => ({ events })) },
    { weight: 1, arbitrary: one.map((good) => ({ events: [good], source: 1 })) },
  );
}
