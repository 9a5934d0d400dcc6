/** Data of jobs and requests for the fuzz, with times around that of the run. */
import * as fc from 'fast-check';
import { drawnEvent, type Event, mostly, NAMES, stranger, toEvent } from '../harness/event-arbitraries.js';

const MINUTE = 60_000;
const DAY = 86_400_000;
const distance = fc.oneof(fc.constantFrom(-DAY, -40 * DAY), fc.integer({ min: -60 * DAY, max: 9 * MINUTE }));

/** @param oddOneIn one event in this many has a field that may not fit, or lacks one */
export function event(accounts: readonly string[], now: number, oddOneIn: number): fc.Arbitrary<Event> {
  return fc
    .tuple(fc.constantFrom(...accounts), drawnEvent({ ids: 31, distance, oddOneIn, voidOneIn: 2 }))
    .map(([accountId, drawn]) => ({ accountId, ...toEvent(drawn, NAMES, now) }));
}

/** The data of a job or the body of a request: a list of events, one event, or any other JSON. @param most events in a list */
export function eventData(accounts: readonly string[], now: number, most: number): fc.Arbitrary<unknown> {
  const one = event(accounts, now, 3);
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
