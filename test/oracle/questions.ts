/** Random requests about a history: windows at its edges, every grouping and filter, pages of any size. */
import fc from 'fast-check';
import type { OracleQuery } from './answer.js';
import { instantOf, latestEnd, type Resolution } from './calendar.js';
import { type History, nameNumber, nth } from './histories.js';
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

/** Window lengths at which defaults and limits change, and lengths that cover a history. */
const length = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(1, HOUR, DAY, 7 * DAY - 1, 7 * DAY, 7 * DAY + 1) },
  { weight: 2, arbitrary: fc.constantFrom(90 * DAY - 1, 90 * DAY, 365 * DAY, 366 * DAY, 800 * DAY) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 20 * DAY }) },
);

/** One end of a window: near a moment of the scene, with the window around that moment, or exactly at an event. */
const edge = fc.oneof(
  { weight: 2, arbitrary: fc.record({ from: distance }) },
  { weight: 3, arbitrary: fc.record({ from: distance, back: fc.constantFrom(DAY, 3 * DAY, 40 * DAY) }) },
  { weight: 2, arbitrary: fc.record({ fromEvent: fc.nat(23) }) },
  { weight: 2, arbitrary: fc.record({ toEvent: fc.nat(23) }) },
);
type Edge = typeof edge extends fc.Arbitrary<infer Value> ? Value : never;

function startOf(edge: Edge, length: number, { scene, sendings }: History): number {
  const instantOfEvent = (n: number) => instantOf(String(sendings[n % sendings.length]?.event.timestamp)) ?? scene;
  if ('toEvent' in edge) return instantOfEvent(edge.toEvent) - length;
  if ('fromEvent' in edge) return instantOfEvent(edge.fromEvent);
  return scene + edge.from - ('back' in edge ? edge.back : 0);
}

const groupBy = fc.shuffledSubarray(GROUP_BY, { maxLength: 3 });
const limit = fc.oneof(fc.constant({}), fc.record({ limit: fc.constantFrom('1', '3', '5', '100', '1000000') }));

const resourceName = fc.oneof({ weight: 9, arbitrary: nameNumber }, fc.constant('nobody'));
const resourceUuid = fc.oneof(resourceName, fc.constant(''));
const filters = fc.oneof(
  { weight: 3, arbitrary: fc.constant({}) },
  {
    weight: 2,
    arbitrary: fc.oneof(
      fc.record({ workspace: resourceName }),
      fc.record({ resourceType: fc.constantFrom(...RESOURCE_TYPES) }),
      fc.record({ resourceName }),
      fc.record({ resourceUuid }),
      fc.record({ billingDimension: fc.constantFrom(...Object.keys(DIMENSIONS)) }),
      fc.record({ workspace: resourceName, resourceName, resourceUuid }, { requiredKeys: [] }),
    ),
  },
);

/** A request, generated without its history. No part depends on another, so that fast-check can shrink each alone. */
export const questionDraft = fc.record({
  about: fc.oneof(
    { weight: 6, arbitrary: fc.constant<Question['about']>('metrics') },
    { weight: 1, arbitrary: fc.constant<Question['about']>('resource types') },
  ),
  // A window over all of time has a bucket for every month, which is slow.
  ofEverything: fc.oneof({ weight: 40, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
  edge,
  length,
  spellings: fc.tuple(spelling, spelling),
  resolution: fc.nat(2 * RESOLUTIONS.length),
  groupBy,
  filters,
  limit,
});
type QuestionDraft = typeof questionDraft extends fc.Arbitrary<infer Value> ? Value : never;

export function toQuestion(draft: QuestionDraft, history: History): Question {
  const from = draft.ofEverything ? 0 : Math.max(0, startOf(draft.edge, draft.length, history));
  const to = draft.ofEverything ? END_OF_TIME : Math.min(END_OF_TIME, from + draft.length);
  const window = { startTime: spell(from, draft.spellings[0]), endTime: spell(to, draft.spellings[1]) };
  if (draft.about === 'resource types') return { about: draft.about, query: window };
  const allowed = RESOLUTIONS.filter((resolution) => to <= latestEnd(from, resolution));
  const resolution = allowed[draft.resolution % (2 * allowed.length)];
  const chosen = Object.entries(draft.filters).map(([parameter, value]): [string, string] => [
    parameter,
    typeof value === 'number' ? nth(history.names, value) : String(value),
  ]);
  const query = {
    ...window,
    ...(resolution && { resolution }),
    ...(draft.groupBy.length > 0 && { groupBy: draft.groupBy.join(',') }),
    ...Object.fromEntries(chosen),
    ...draft.limit,
  };
  return { about: draft.about, query };
}
