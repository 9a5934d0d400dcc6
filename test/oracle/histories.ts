/** Random histories: what producers send for two accounts, in which jobs, in two rounds. */
import fc from 'fast-check';
import { anchor, distance, spell, spelling } from './anchors.js';
import { DIMENSIONS, RESOURCE_TYPES } from './prices.js';

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
  '',
  '-1',
  '1e3',
  '.5',
  '5.',
  '1000000000000000',
  1e15,
  1e21,
  -1,
  null,
  true,
  'x',
);

const dimension = fc.constantFrom(...Object.keys(DIMENSIONS));
const revision = fc.oneof(
  { weight: 5, arbitrary: fc.constant({}) },
  { weight: 4, arbitrary: fc.record({ revision: fc.constantFrom(0, 1, 2, 3) }) },
  { weight: 1, arbitrary: fc.constant({ revision: 65_535 }) },
);
const voiding = fc.oneof(
  { weight: 6, arbitrary: fc.constant({}) },
  { weight: 1, arbitrary: fc.record({ void: fc.boolean() }) },
);

/** At most one fault per event, so that each rule is tested alone. */
const fault = fc.oneof(
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
const draft = fc.record({
  eventId,
  workspace: nameNumber,
  resourceName: nameNumber,
  resourceUuid: fc.option(nameNumber),
  billingDimension: dimension,
  usage,
  moment: fc.tuple(distance, spelling),
  revision,
  voiding,
  fault,
});
type Draft = typeof draft extends fc.Arbitrary<infer Value> ? Value : never;

function toSketch({ moment: [milliseconds, as], ...draft }: Draft, anchor: number, names: readonly string[]): Sketch {
  const dimension = DIMENSIONS[draft.billingDimension];
  return {
    eventId: draft.eventId,
    workspace: nth(names, draft.workspace),
    resourceType: dimension?.resourceType,
    resourceName: nth(names, draft.resourceName),
    ...(draft.resourceUuid !== null && { resourceUuid: nth(names, draft.resourceUuid) }),
    billingDimension: draft.billingDimension,
    usage: dimension?.counts ? countOf(draft.usage) : draft.usage,
    // May lie before 1970, which is refused.
    timestamp: spell(anchor + milliseconds, as),
    ...draft.revision,
    ...draft.voiding,
    ...draft.fault,
  };
}

/** Most random usages are not whole numbers, and a count would be refused. */
function countOf(usage: number | string): number | string {
  return Number.isInteger(Number(usage)) ? usage : Math.floor(Number(usage) * 10);
}

const account = fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.constant(1) });
const jobs = fc.array(fc.nat(LAST_JOB), { minLength: 1, maxLength: 3 });

export const history: fc.Arbitrary<History> = fc
  .record({
    anchor,
    names: fc.array(name, { minLength: 1, maxLength: NAMES }),
    drafts: fc.array(fc.record({ draft, account, jobs }), { minLength: 1, maxLength: 24, size: 'max' }),
    ownPrices: fc.oneof({ weight: 3, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
    nameSuffix: fc.constantFrom('', ' ', '/', '?a=b', '#', '%2F', '\u00e9', '\u{1f600}'),
  })
  .map(({ drafts, ...history }) => ({
    ...history,
    sendings: drafts.map(({ draft, ...sending }) => ({
      event: toSketch(draft, history.anchor, history.names),
      ...sending,
    })),
  }));
