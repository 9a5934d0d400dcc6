/** Random histories: what producers send for two accounts, in which jobs, in two rounds. */
import fc from 'fast-check';
import { DIMENSIONS, RESOURCE_TYPES } from './event-rules.js';

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const DAY = 24 * HOUR;

/** Moments around which the events of a history lie: edges of calendars, of years and of the supported time. */
export const ANCHORS = [
  '1970-01-01T00:00:00Z', // the first instant, a Thursday: its week begins before 1970
  '2000-02-29T00:00:00Z', // a leap day in a year divisible by 100
  '2020-12-28T00:00:00Z', // Monday of week 53
  '2021-01-04T00:00:00Z', // Monday of week 1, after three January days of week 53
  '2024-02-29T12:00:00Z', // noon of a leap day
  '2024-03-01T00:00:00Z',
  '2024-12-30T00:00:00Z', // Monday of week 1 of the next year
  '2025-01-01T00:00:00Z',
  '2025-03-09T07:00:00Z', // New York leaves standard time
  '2025-11-02T06:00:00Z', // and returns to it
  '2025-12-31T23:00:00Z', // the last hour of a year
].map((text) => Date.parse(text));

const anchor = fc.constantFrom(...ANCHORS);

/** Milliseconds from an anchor to an event or an end of a window; mostly at an edge or next to it. */
export const distance = fc
  .record({
    days: fc.oneof(
      { weight: 20, arbitrary: fc.constant(0) },
      { weight: 6, arbitrary: fc.constantFrom(-1, 1, -3, 4, 7) },
      { weight: 1, arbitrary: fc.constantFrom(-366, -90, -31, 31, 90, 365, 366) },
    ),
    hours: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.integer({ min: -24, max: 24 })),
    milliseconds: fc.oneof(
      { weight: 2, arbitrary: fc.constantFrom(0, -1, 1) },
      { weight: 1, arbitrary: fc.constantFrom(30 * 60 * SECOND, 30 * 60 * SECOND + 500, HOUR - 1) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: HOUR - 1 }) },
    ),
  })
  .map(({ days, hours, milliseconds }) => days * DAY + hours * HOUR + milliseconds);

/** Ways to write the same millisecond. */
export const spelling = fc.constantFrom('Z', '+00:00', 'nanoseconds', 'short');
type Spelling = 'Z' | '+00:00' | 'nanoseconds' | 'short';

export function spell(instant: number, spelling: Spelling): string {
  const text = new Date(instant).toISOString();
  if (spelling === 'nanoseconds') return text.replace('Z', '999999Z');
  if (spelling === 'short') return text.replace('.000Z', 'Z');
  return text.replace('Z', spelling);
}

/** An event without its account. */
export type Sketch = Readonly<Record<string, unknown>>;

interface Sending {
  readonly event: Sketch;
  /** 1: of the second account. */
  readonly account: number;
  /** The jobs that contain it, each 0 to {@link LAST_JOB}; a job may contain it twice. */
  readonly jobs: readonly number[];
}

export interface History {
  readonly anchor: number;
  readonly names: readonly string[];
  readonly sendings: readonly Sending[];
  /** Whether the first account has prices of its own. */
  readonly ownPrices: boolean;
  /** The end of the accounts' names, which is part of a path. */
  readonly nameSuffix: string;
}

const JOBS_PER_ROUND = 3;
const LAST_JOB = 2 * JOBS_PER_ROUND - 1;

/** The jobs of the first round and those of the second, each a list of events. */
export function roundsOf(
  { sendings }: History,
  accountIds: readonly [string, string],
): Record<'early' | 'late', Sketch[][]> {
  const contents = (job: number) =>
    sendings.flatMap(({ event, account, jobs }) =>
      jobs.filter((each) => each === job).map(() => ({ accountId: accountIds[account], ...event })),
    );
  const jobs = Array.from({ length: LAST_JOB + 1 }, (_, job) => contents(job));
  const sent = (round: Sketch[][]) => round.filter((events) => events.length > 0);
  return { early: sent(jobs.slice(0, JOBS_PER_ROUND)), late: sent(jobs.slice(JOBS_PER_ROUND)) };
}

/** UTF-16 sorts the astral characters below U+E000 to U+FFFF, UTF-8 above them. */
const LIKELY_NAMES = ['a', 'b', 'A', 'a b', ' ', '"\\/', 'null', '0', '-1', '%41', 'a,b', "'; --", '\u2028', '\ufeff'];
const SORTING_NAMES = ['\u00e9', 'e\u0301', '\uffee', '\ue000', '\u{10000}', '\u{1f600}', '\u{10ffff}', 'a\u{1f600}'];
const LONG_NAMES = ['x'.repeat(256), '\u{1f600}'.repeat(256), `${'x'.repeat(255)}\uffee`];
const WRONG_NAMES: unknown[] = ['', '\u0000', 'a\u007fb', 'a\u0085', 'x'.repeat(257), '\ud800', 'a\udc00', null, 7];

const isAllowed = (text: string) => !/[\p{Cc}\p{Cs}]/u.test(text);
const name = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...LIKELY_NAMES) },
  { weight: 4, arbitrary: fc.constantFrom(...SORTING_NAMES) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', minLength: 1, maxLength: 8 }).filter(isAllowed) },
  { weight: 1, arbitrary: fc.constantFrom(...LONG_NAMES) },
);

const digits = (count: number) => fc.stringMatching(new RegExp(`^[0-9]{${count}}$`));
const usageText = fc.oneof(
  fc.tuple(fc.nat(99), digits(9)).map(([whole, kept]) => `${whole}.${kept}`),
  fc.tuple(fc.nat(99), digits(9)).map(([whole, kept]) => `${whole}.${kept}5`),
  fc.tuple(digits(9), fc.constantFrom('49999999999', '50000000', '500000000001')).map((parts) => `0.${parts.join('')}`),
  fc.constantFrom('007.50', '0', '0.0', '999999999999999.999999999', '999999999999999.9999999999', '3', '1000000.0'),
);
const usageNumber = fc.oneof(
  fc.nat(1_000_000),
  fc.constantFrom(0, 1, 0.5, 0.1 + 0.2, 1e-7, 5e-10, 1.5e-9, 2.5e-9, 4.9e-324, 123456789.1234567, 999999999999999.9),
  fc.double({ min: 0, max: 1e6, noNaN: true }),
);
const usage = fc.oneof({ weight: 2, arbitrary: fc.constantFrom(1, 2, '0.000000003') }, usageText, usageNumber);
const wrongUsage = fc.constantFrom<unknown>(
  ...['', '-1', '1e3', '.5', '5.', 'x', '1000000000000000', 1e15, 1e21, -1, null, true],
);

const dimension = fc.constantFrom(...Object.keys(DIMENSIONS));
const revision = fc.oneof(
  { weight: 5, arbitrary: fc.constant({}) },
  { weight: 5, arbitrary: fc.record({ revision: fc.constantFrom(0, 1, 2, 3, 65_535) }) },
);
const voiding = fc.oneof(
  { weight: 6, arbitrary: fc.constant({}) },
  { weight: 1, arbitrary: fc.record({ void: fc.boolean() }) },
);

/** At most one fault per event, so that each rule is tested alone. */
const problem = fc.oneof(
  { weight: 30, arbitrary: fc.constant({}) },
  {
    weight: 1,
    arbitrary: fc.oneof(
      fc.record({ usage: wrongUsage }),
      fc.record({ workspace: fc.constantFrom(...WRONG_NAMES) }),
      fc.record({ resourceUuid: fc.constantFrom(...WRONG_NAMES) }),
      fc.record({ resourceType: fc.constantFrom(...RESOURCE_TYPES, 'model') }),
      fc.record({
        timestamp: fc.constantFrom('1969-12-31T23:59:59.999Z', '2099-01-01T00:00:00Z', '2025-02-29T00:00:00Z'),
      }),
      fc.record({ timestamp: fc.constantFrom('2025-01-01T00:00:00+01:00', '2025-01-01', 1_735_689_600_000, '') }),
      fc.record({ revision: fc.constantFrom<unknown>(-1, 1.5, 65_536, '1', null) }),
      fc.record({ void: fc.constantFrom<unknown>('true', 1, null) }),
      fc.record({ eventId: fc.constantFrom<unknown>('', 'x', '0190c5e47b1a7def8abc0123456789ab', 7) }),
      fc.record({ billingDimension: fc.constantFrom<unknown>('toString', '', null, ['volume_storage_gbs']) }),
      fc.record({ price: fc.constant(1) }),
    ),
  },
);

/** Only a few ids, so that events collide; an id in upper case is the same id. */
const eventId = fc
  .tuple(fc.nat(5), fc.boolean())
  .map(([n, upper]) => (upper ? `0190C5E4-7B1A-7DEF-8ABC-00000000000${n}` : `0190c5e4-7b1a-7def-8abc-00000000000${n}`));

/** How many names a history uses; an event refers to them by number. */
const NAMES = 5;
export const nameNumber = fc.nat(NAMES - 1);

export function nth(names: readonly string[], number: number): string {
  return names[number % names.length] ?? '';
}

/** No part depends on another, so that fast-check can shrink each alone. */
const drawn = fc.record({
  eventId,
  workspace: nameNumber,
  resourceName: nameNumber,
  resourceUuid: fc.option(nameNumber),
  billingDimension: dimension,
  usage,
  moment: fc.tuple(distance, spelling),
  revision,
  voiding,
  problem,
});
type Drawn = typeof drawn extends fc.Arbitrary<infer Value> ? Value : never;

function toSketch({ moment: [milliseconds, as], ...drawn }: Drawn, anchor: number, names: readonly string[]): Sketch {
  const dimension = DIMENSIONS[drawn.billingDimension];
  return {
    eventId: drawn.eventId,
    workspace: nth(names, drawn.workspace),
    resourceType: dimension?.resourceType,
    resourceName: nth(names, drawn.resourceName),
    ...(drawn.resourceUuid !== null && { resourceUuid: nth(names, drawn.resourceUuid) }),
    billingDimension: drawn.billingDimension,
    usage: dimension?.counts ? countOf(drawn.usage) : drawn.usage,
    // May lie before 1970, which is rejected.
    timestamp: spell(anchor + milliseconds, as),
    ...drawn.revision,
    ...drawn.voiding,
    ...drawn.problem,
  };
}

/** Most random usages are not whole numbers, and a count would be rejected. */
function countOf(usage: number | string): number | string {
  return Number.isInteger(Number(usage)) ? usage : Math.floor(Number(usage) * 10);
}

const account = fc.constantFrom(0, 0, 0, 1);
const jobs = fc.array(fc.nat(LAST_JOB), { minLength: 1, maxLength: 3 });

export const history: fc.Arbitrary<History> = fc
  .record({
    anchor,
    names: fc.array(name, { minLength: 1, maxLength: NAMES }),
    allDrawn: fc.array(fc.record({ drawn, account, jobs }), { minLength: 1, maxLength: 24, size: 'max' }),
    ownPrices: fc.constantFrom(false, false, false, true),
    nameSuffix: fc.constantFrom('', ' ', '/', '?a=b', '#', '%2F', '\u00e9', '\u{1f600}'),
  })
  .map(({ allDrawn, ...history }) => ({
    ...history,
    sendings: allDrawn.map(({ drawn, ...sending }) => ({
      event: toSketch(drawn, history.anchor, history.names),
      ...sending,
    })),
  }));
