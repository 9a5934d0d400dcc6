/** Random requests about a history: windows at its edges, every grouping and filter, pages of any size. */
import fc from 'fast-check';
import { nth, spell, spelling } from '../harness/event-arbitraries.js';
import { instantOf, latestEnd, type Resolution } from './calendar.js';
import { ALL_DIMENSIONS, ALL_RESOURCE_TYPES } from './event-rules.js';
import { distance, type History } from './histories.js';
import type { OracleQuery, OracleRole } from './response.js';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** A window may begin long before the first event and end long after the last. */
const FIRST = Date.UTC(1900, 0);
const LAST = Date.UTC(2150, 0) - 1;

const RESOLUTIONS: readonly Resolution[] = ['hourly', 'daily', 'weekly', 'monthly'];
const GROUP_BY = ['workspace', 'resource_type', 'resource_name', 'resource_uuid', 'billing_dimension'];

export interface Request {
  readonly about: 'metrics' | 'resource types' | 'metrics of both accounts';
  readonly query: OracleQuery;
  /** Default: an admin. Of both accounts, a member is one of the second. */
  readonly role?: OracleRole;
  /** The accounts by which both are filtered: 0 and 1. */
  readonly accounts?: { readonly [Filter in 'account' | 'excludeAccount']?: readonly number[] };
}

/** Window lengths at which defaults and limits change, and lengths that cover a history. */
const length = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(1, HOUR, DAY, 7 * DAY - 1, 7 * DAY, 7 * DAY + 1) },
  { weight: 2, arbitrary: fc.constantFrom(90 * DAY - 1, 90 * DAY, 365 * DAY, 366 * DAY, 800 * DAY) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 20 * DAY }) },
);

/** One end of a window: near a moment of the anchor, with the window around that moment, or exactly at an event. */
const edge = fc.oneof(
  { weight: 2, arbitrary: fc.record({ from: distance }) },
  { weight: 3, arbitrary: fc.record({ from: distance, back: fc.constantFrom(DAY, 3 * DAY, 40 * DAY) }) },
  { weight: 2, arbitrary: fc.record({ fromEvent: fc.nat(23) }) },
  { weight: 2, arbitrary: fc.record({ toEvent: fc.nat(23) }) },
);
type Edge = typeof edge extends fc.Arbitrary<infer Value> ? Value : never;

function startOf(edge: Edge, length: number, { anchor, sendings }: History): number {
  const instantOfEvent = (n: number) => {
    const instant = instantOf(String(sendings[n % sendings.length]?.event.timestamp)) ?? anchor;
    // The window of an event with an odd year could not be written.
    return instant >= FIRST && instant <= LAST ? instant : anchor;
  };
  if ('toEvent' in edge) return instantOfEvent(edge.toEvent) - length;
  if ('fromEvent' in edge) return instantOfEvent(edge.fromEvent);
  return anchor + edge.from - ('back' in edge ? edge.back : 0);
}

const groupBy = fc.shuffledSubarray(GROUP_BY, { maxLength: 3 });
const accountNumber = fc.array(fc.nat(1), { minLength: 1, maxLength: 2 });
const accountFilters = fc.oneof(
  { weight: 3, arbitrary: fc.constant({}) },
  { weight: 2, arbitrary: fc.record({ account: accountNumber, excludeAccount: accountNumber }, { requiredKeys: [] }) },
);
const limit = fc.oneof(fc.constant({}), fc.record({ limit: fc.constantFrom('1', '3', '5', '100', '1000000') }));

const someName = fc.oneof({ weight: 9, arbitrary: fc.nat(4) }, fc.constant('nobody'));
const oneOrMore = <Value>(value: fc.Arbitrary<Value>) =>
  fc.oneof({ weight: 3, arbitrary: value.map((one) => [one]) }, fc.array(value, { minLength: 2, maxLength: 3 }));
const names = oneOrMore(someName);
const withoutResourceUuid = fc.constantFrom('true', 'true', 'false');
const someFilters = fc.oneof(
  fc.record({ workspace: names }),
  fc.record({ resourceType: oneOrMore(fc.constantFrom(...ALL_RESOURCE_TYPES)) }),
  fc.record({ resourceName: names }),
  fc.record({ resourceUuid: names, withoutResourceUuid }, { requiredKeys: [] }),
  fc.record({ billingDimension: oneOrMore(fc.constantFrom(...Object.keys(ALL_DIMENSIONS))) }),
  fc.record({ workspace: names, resourceName: names, resourceUuid: names, withoutResourceUuid }, { requiredKeys: [] }),
);
const isOfEvery = { weight: 3, arbitrary: fc.constant({}) };
/** What is selected, and under the same names what is left out of that. */
const filters = fc.oneof(isOfEvery, { weight: 2, arbitrary: someFilters });

/** A request, generated without its history. No part depends on another, so that fast-check can shrink each alone. */
export const drawnRequest = fc.record({
  about: fc.constantFrom<Request['about'][]>(
    ...Array(6).fill('metrics'),
    ...Array(4).fill('metrics of both accounts'),
    'resource types',
  ),
  // A window over all of time has a bucket for every month, which is slow.
  ofEverything: fc.oneof({ weight: 40, arbitrary: fc.constant(false) }, fc.constant(true)),
  edge,
  length,
  spellings: fc.tuple(spelling, spelling),
  resolution: fc.nat(2 * RESOLUTIONS.length),
  groupBy,
  byAccount: fc.boolean(),
  accountFilters,
  filters,
  exclusions: filters,
  limit,
  asMember: fc.constantFrom(false, false, false, true),
});
type DrawnRequest = typeof drawnRequest extends fc.Arbitrary<infer Value> ? Value : never;

export function toRequest(drawn: DrawnRequest, history: History): Request {
  const { about, asMember } = drawn;
  const from = drawn.ofEverything ? FIRST : startOf(drawn.edge, drawn.length, history);
  const to = drawn.ofEverything ? LAST : from + drawn.length;
  const window = { startTime: spell(from, drawn.spellings[0]), endTime: spell(to, drawn.spellings[1]) };
  const role = asMember ? 'member' : 'admin';
  const filters = chosenFilters(drawn, history);
  if (about === 'resource types') return { about, role, query: { ...window, ...filters } };
  const allowed = RESOLUTIONS.filter((resolution) => to <= latestEnd(from, resolution));
  const resolution = allowed[drawn.resolution % (2 * allowed.length)];
  const ofBoth = about === 'metrics of both accounts';
  const dimensions = drawn.groupBy.filter((name) => !asMember || name !== 'workspace');
  const groupBy = ofBoth && drawn.byAccount ? [...dimensions.slice(0, 2), 'account'] : dimensions;
  const query = {
    ...window,
    ...(resolution && { resolution }),
    ...(groupBy.length > 0 && { groupBy: groupBy.join(',') }),
    ...filters,
    ...drawn.limit,
  };
  return { about, role, query, ...(ofBoth && { accounts: drawn.accountFilters }) };
}

/** A member may not filter by workspace. */
function chosenFilters({ filters, exclusions, asMember }: DrawnRequest, { names }: History): Partial<OracleQuery> {
  const excluded = Object.entries(exclusions).map(([name, values]) => {
    return [`exclude${name.charAt(0).toUpperCase()}${name.slice(1)}`, values] as const;
  });
  const chosen = [...Object.entries(filters), ...excluded].map(([parameter, values]) => {
    const named = typeof values === 'string' ? values : values.map((n) => (typeof n === 'number' ? nth(names, n) : n));
    return [parameter, named] as const;
  });
  return Object.fromEntries(chosen.filter(([parameter]) => !asMember || !/workspace/i.test(parameter)));
}
