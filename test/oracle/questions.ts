/** Random questions about a history: windows at its edges, every grouping and filter, pages of any size. */
import fc from 'fast-check';
import type { OracleQuery } from './answer.js';
import { defaultResolution, latestEnd, type Resolution } from './calendar.js';
import { DIMENSIONS, RESOURCE_TYPES } from './prices.js';
import { distance, spell, spelling } from './scenes.js';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const END_OF_TIME = Date.UTC(2101, 0) - 1;

const RESOLUTIONS: readonly Resolution[] = ['hourly', 'daily', 'weekly', 'monthly'];
const GROUP_BY = ['workspace', 'resource_type', 'resource_name', 'resource_uuid', 'billing_dimension'];

export interface Question {
  readonly about: 'metrics' | 'resource types';
  readonly query: OracleQuery;
}

/** Lengths at which defaults and caps change, and those that cover a history. */
const length = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(1, HOUR, DAY, 7 * DAY - 1, 7 * DAY, 7 * DAY + 1) },
  { weight: 2, arbitrary: fc.constantFrom(90 * DAY - 1, 90 * DAY, 365 * DAY, 366 * DAY, 800 * DAY) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 20 * DAY }) },
);

/** Before the moment more often than after it, so that most windows hold something. */
const start = fc.oneof(
  { weight: 2, arbitrary: distance },
  { weight: 3, arbitrary: fc.tuple(distance, fc.constantFrom(DAY, 3 * DAY, 40 * DAY)).map(([ms, back]) => ms - back) },
);

const window = (scene: number) =>
  fc.record({ start, length, spellings: fc.tuple(spelling, spelling) }).map(({ start, length, spellings }) => {
    const from = Math.max(0, scene + start);
    const to = Math.min(END_OF_TIME, from + length);
    return { from, to, startTime: spell(from, spellings[0]), endTime: spell(to, spellings[1]) };
  });

/** All of time, in which every month is a bucket. */
const everything = fc.constant({
  from: 0,
  to: END_OF_TIME,
  startTime: '1970-01-01T00:00:00Z',
  endTime: '2100-12-31T23:59:59.999Z',
});

const groupBy = fc
  .shuffledSubarray(GROUP_BY, { maxLength: 3 })
  .map((names) => (names.length > 0 ? { groupBy: names.join(',') } : {}));
const limit = fc.oneof(fc.constant({}), fc.record({ limit: fc.constantFrom('1', '3', '5', '100', '1000000') }));

function filters(names: readonly string[]) {
  const name = fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...names) }, fc.constant('nobody'));
  const uuid = fc.oneof(name, fc.constant(''));
  return fc.oneof(
    { weight: 3, arbitrary: fc.constant({}) },
    {
      weight: 2,
      arbitrary: fc.oneof(
        fc.record({ workspace: name }),
        fc.record({ resourceType: fc.constantFrom(...RESOURCE_TYPES) }),
        fc.record({ resourceName: name }),
        fc.record({ resourceUuid: uuid }),
        fc.record({ billingDimension: fc.constantFrom(...Object.keys(DIMENSIONS)) }),
        fc.record({ workspace: name, resourceName: name, resourceUuid: uuid }, { requiredKeys: [] }),
      ),
    },
  );
}

/** A resolution that the window allows, or none. */
function resolution(from: number, to: number) {
  const allowed = RESOLUTIONS.filter((each) => to <= latestEnd(from, each));
  return fc.oneof(fc.constant({}), fc.record({ resolution: fc.constantFrom(...allowed, defaultResolution(from, to)) }));
}

export function question(scene: number, names: readonly string[]): fc.Arbitrary<Question> {
  return fc
    .oneof({ weight: 40, arbitrary: window(scene) }, { weight: 1, arbitrary: everything })
    .chain(({ from, to, startTime, endTime }) =>
      fc.oneof(
        {
          weight: 6,
          arbitrary: parameters(from, to, names).map((chosen) => metrics({ startTime, endTime, ...chosen })),
        },
        { weight: 1, arbitrary: fc.constant<Question>({ about: 'resource types', query: { startTime, endTime } }) },
      ),
    );
}

function parameters(from: number, to: number, names: readonly string[]) {
  return fc
    .tuple(resolution(from, to), groupBy, filters(names), limit)
    .map(([resolution, groupBy, filter, limit]) => ({ ...resolution, ...groupBy, ...filter, ...limit }));
}

function metrics(query: OracleQuery): Question {
  return { about: 'metrics', query };
}
