/**
 * fast-check arbitraries of usage events, for the oracle and the fuzz: values that fit, values at the limits of what fits, and hostile
 * values. An event refers to its names and its time by numbers, so that fast-check can shrink each part alone.
 */
import * as fc from 'fast-check';
import { ALL_DIMENSIONS, DIMENSIONS, isName, RESOURCE_TYPES } from '../oracle/event-rules.js';

/** The odd value once in a number of times, else the usual. */
export function mostly<T>(times: number, usual: fc.Arbitrary<T>, odd: fc.Arbitrary<T>): fc.Arbitrary<T> {
  return fc.oneof({ arbitrary: usual, weight: times - 1 }, { arbitrary: odd, weight: 1 });
}

/** Texts that have broken services before, and any other. `string` itself gives `__proto__`, `toString` and the like. */
export const hostileText: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.constantFrom('a', '😀').chain((one) => fc.constantFrom(256, 257, 3_000).map((times) => one.repeat(times))),
  fc.double().map(String),
  fc.constantFrom('', ' ', '+', '007', '0x10', '٣', '99999999999999999999999', 'null', 'true', '[]', '{x: String}'),
  fc.constantFrom(...'..|./|//|\\|%|%00|%2e%2e%2f|*|?|#|&|=|\u0000|\r\nX-Injected: 1'.split('|')),
  fc.constantFrom(..."\u0085|\u2028|\u202eleft|\ufeff|\ufffd|' OR 1=1 --|$\u007bjndi:ldap://127.0.0.1/x}".split('|')),
);

const LONG_NAMES = ['x'.repeat(256), '\u{1f600}'.repeat(256), `${'x'.repeat(255)}\uffee`];
/** UTF-16 sorts the astral characters below U+E000 to U+FFFF, UTF-8 above them. */
const SORTING_NAMES = ['\u00e9', 'e\u0301', '\uffee', '\ue000', '\u{10000}', '\u{1f600}', '\u{10ffff}', 'a\u{1f600}'];
const LIKELY_NAMES = ['a', 'b', 'A', 'a b', ' ', '"\\/', 'null', '0', '-1', '%41', 'a,b', "'; --", '\u2028', '\ufeff'];
/** Names that are allowed. */
export const NAMES: readonly string[] = [...LIKELY_NAMES, ...SORTING_NAMES, ...LONG_NAMES, '__proto__'];
export const name = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...LIKELY_NAMES) },
  { weight: 4, arbitrary: fc.constantFrom(...SORTING_NAMES) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', minLength: 1, maxLength: 8 }).filter(isName) },
  { weight: 1, arbitrary: fc.constantFrom(...LONG_NAMES) },
);

/** Texts of instants, of events and of windows: real ones, and texts that only look like one. */
export const oddInstant = fc.constantFrom(
  ...['1970-01-01T00:00:00Z', '1969-12-31T23:59:59.999Z', '0001-01-01T00:00:00Z', '0000-01-01T00:00:00Z'],
  ...['2024-02-29T12:00:00Z', '2025-02-29T12:00:00Z', '2025-13-01T00:00:00Z', '2025-10-01T24:00:00Z'],
  ...['1999-12-31T23:59:60Z', '9999-12-31T23:59:59Z', '2100-12-31T23:59:59.999Z', '+012025-10-01T00:00:00Z'],
  ...['2025-10-01T00:00:00+00:00', '2025-10-01T00:00:00-00:00', '2025-10-01T00:00:00+01:00', '2025-10-01t00:00:00z'],
  ...['2025-10-01T00:00:00 00:00', '2025-10-01 00:00:00Z', '2025-10-01', '2025-10-01T00:00:00', '20251001T000000Z'],
  ...['2025-10-01T00:00:00.Z', '2025-10-01T00:00:00.123456789Z', '2025-10-01T00:00:00.1234567891Z', ''],
  ...['2099-01-01T00:00:00Z', '2106-02-07T06:28:16Z', '2262-04-11T23:47:16.855Z'],
);

/** Ways to write the same millisecond. */
export const spelling = fc.constantFrom('Z', '+00:00', 'nanoseconds', 'short');
type Spelling = 'Z' | '+00:00' | 'nanoseconds' | 'short';

export function spell(instant: number, spelling: Spelling): string {
  const text = new Date(instant).toISOString();
  if (spelling === 'nanoseconds') return text.replace('Z', '999999Z');
  if (spelling === 'short') return text.replace('.000Z', 'Z');
  return text.replace('Z', spelling);
}

const TAILS = ['49999999999', '50000000', '500000000001'];
const USAGE_TEXTS = ['007.50', '0', '0.0', '999999999999999.999999999', '999999999999999.9999999999', '3', '1000000.0'];
const USAGE_NUMBERS = [
  0, 1, 0.5, 0.30000000000000004, 1e-7, 5e-10, 1.5e-9, 2.5e-9, 4.9e-324, 123456789.1234567, 999999999999999.9,
];
const digits = (count: number) => fc.stringMatching(new RegExp(`^[0-9]{${count}}$`));
const usage = fc.oneof<fc.WeightedArbitrary<string | number>[]>(
  { weight: 24, arbitrary: fc.constantFrom(1, 2, '0.000000003') },
  // Nine decimals are stored; a tie is rounded half-even.
  { weight: 3, arbitrary: fc.tuple(fc.nat(99), digits(9)).map((parts) => parts.join('.')) },
  { weight: 3, arbitrary: fc.tuple(fc.nat(99), digits(9)).map((parts) => `${parts.join('.')}5`) },
  { weight: 3, arbitrary: fc.tuple(digits(9), fc.constantFrom(...TAILS)).map((parts) => `0.${parts.join('')}`) },
  { weight: 3, arbitrary: fc.constantFrom(...USAGE_TEXTS) },
  { weight: 4, arbitrary: fc.nat(1_000_000) },
  { weight: 4, arbitrary: fc.constantFrom(...USAGE_NUMBERS) },
  { weight: 4, arbitrary: fc.double({ min: 0, max: 1e6, noNaN: true }) },
);
const oddUsage = fc.oneof(
  fc.double(),
  fc.bigInt({ min: 0n, max: 10n ** 17n }).map(String),
  fc.stringMatching(/^[0-9]{0,16}\.?[0-9]{0,12}$/),
  fc.constantFrom(1e-10, 999_999_999_999_999, 1e15, 1e21, -0, -1, -1e-20),
  fc.constantFrom(
    ...'-0|+1| 1|-1|1e3|1,5|.5|5.|x||٣|1000000000000000'.split('|'),
    `1${'0'.repeat(400)}`,
    `0.${'0'.repeat(5_000)}1`,
  ),
);

/** Any JSON value; as an event, a job or a field it does not fit. */
export const stranger: fc.Arbitrary<unknown> = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constant({ events: [] }));
const text: fc.Arbitrary<unknown> = fc.oneof(hostileText, fc.constantFrom('\ud800', 'a\udfff', 'a\u007fb'), stranger);
const idForms = (id: string) => [id.toUpperCase(), id.slice(1), id.replaceAll('-', ''), `{${id}}`, `${id}\n`];
const idForm = fc.uuid().chain((id) => fc.constantFrom(...idForms(id)));
/** Values of each field, of which many do not fit. */
const ODD_VALUES: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  eventId: fc.oneof(text, idForm),
  workspace: text,
  resourceType: fc.oneof(fc.constantFrom(...RESOURCE_TYPES, 'model', 'Sandbox', 'constructor'), stranger),
  resourceName: text,
  resourceUuid: text,
  billingDimension: fc.oneof(fc.constantFrom(...Object.keys(DIMENSIONS), 'toString', '__proto__', ''), stranger),
  usage: fc.oneof<fc.Arbitrary<unknown>[]>(oddUsage, stranger),
  timestamp: mostly<unknown>(4, oddInstant, fc.oneof(stranger, fc.nat())),
  revision: fc.oneof<fc.Arbitrary<unknown>[]>(fc.constantFrom(-1, 1.5, 65_535, 65_536, '1'), fc.double(), stranger),
  void: fc.oneof<fc.Arbitrary<unknown>[]>(fc.constantFrom(true, 'true', 1, null), stranger),
};
const REQUIRED = ['eventId', 'workspace', 'resourceType', 'resourceName', 'billingDimension', 'usage', 'timestamp'];
/** At most one field of an event is odd, unknown or missing, so that each rule is tested alone. */
const oddField = fc.oneof<fc.Arbitrary<Event>[]>(
  ...Object.entries(ODD_VALUES).map(([field, values]) => values.map((value) => ({ [field]: value }))),
  fc.tuple(fc.constantFrom('label', 'EventId', 'constructor'), text).map(([field, value]) => ({ [field]: value })),
  fc.constantFrom(...REQUIRED).map((field) => ({ [field]: undefined })),
);

export type Event = Readonly<Record<string, unknown>>;

export interface EventOptions {
  /** The number of different ids: few, so that events meet their copies, revisions and voids. */
  readonly ids: number;
  /** Milliseconds from an instant. */
  readonly distance: fc.Arbitrary<number>;
  /** One event in this many has an odd field. */
  readonly oddOneIn: number;
  /** One event in this many says whether it is a void. */
  readonly voidOneIn: number;
  /** Default: the built-in ones. */
  readonly dimensions?: typeof DIMENSIONS;
}

/** The parts of an event without its account, of which {@link toEvent} makes the event. */
export function drawnEvent({ ids, distance, oddOneIn, voidOneIn, dimensions = DIMENSIONS }: EventOptions) {
  return fc.record({
    // An id in upper case is the same id.
    eventId: fc.tuple(fc.nat(ids - 1), fc.boolean()),
    workspace: fc.nat(99),
    resourceName: fc.nat(99),
    resourceUuid: fc.option(fc.nat(99)),
    billingDimension: fc.constantFrom(...Object.keys(dimensions)),
    usage,
    time: fc.tuple(distance, spelling),
    revision: fc.oneof(fc.constant({}), fc.record({ revision: fc.constantFrom(0, 1, 2, 3, 65_535) })),
    voiding: mostly<object>(voidOneIn, fc.constant({}), fc.record({ void: fc.boolean() })),
    oddity: mostly<Event>(oddOneIn, fc.constant({}), oddField),
  });
}
export type DrawnEvent = ReturnType<typeof drawnEvent> extends fc.Arbitrary<infer Value> ? Value : never;

/** @param names the names to which the event refers by number @param instant epoch milliseconds from which its time is counted */
export function toEvent(
  { eventId: [id, isUpper], time, ...drawn }: DrawnEvent,
  names: readonly string[],
  instant: number,
): Event {
  const dimension = ALL_DIMENSIONS[drawn.billingDimension];
  const eventId = `0190c5e4-7b1a-7def-8abc-${String(id).padStart(12, '0')}`;
  const event = {
    eventId: isUpper ? eventId.toUpperCase() : eventId,
    workspace: nth(names, drawn.workspace),
    resourceType: dimension?.resourceType,
    resourceName: nth(names, drawn.resourceName),
    resourceUuid: drawn.resourceUuid === null ? undefined : nth(names, drawn.resourceUuid),
    billingDimension: drawn.billingDimension,
    usage: dimension?.counts ? countOf(drawn.usage) : drawn.usage,
    timestamp: spell(instant + time[0], time[1]),
    ...drawn.revision,
    ...drawn.voiding,
    ...drawn.oddity,
  };
  return Object.fromEntries(Object.entries(event).filter(([, value]) => value !== undefined));
}

export function nth(names: readonly string[], number: number): string {
  return names[number % names.length] ?? '';
}

/** Most random usages are not whole numbers, and a count would be rejected. */
function countOf(usage: number | string): number | string {
  return Number.isInteger(Number(usage)) ? usage : Math.floor(Number(usage) * 10);
}
