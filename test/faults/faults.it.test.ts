/** One run of each fault in its short form, of which `npm run test:full` plays the long one. */
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { canMountSmallDisk } from './fixture.js';
import { playAll, RUN_WITHIN_MS, type RunResult } from './suite.js';
import { FAULTS } from './table.js';

// A run that hangs is to be named.
jest.setTimeout(1.5 * RUN_WITHIN_MS);

const canMount = canMountSmallDisk();
const PLAYED = FAULTS.filter(({ onSmallDisk }) => canMount || !onSmallDisk);
const stop = new AbortController();
let results: RunResult[];
beforeAll(async () => {
  const seed = Date.now() % 1_000_000;
  const options = { rounds: 1, parallel: 4, brief: true, signal: stop.signal, say: () => undefined };
  results = await playAll(PLAYED, { ...options, seed });
});
afterAll(() => stop.abort());

it.each(PLAYED.map(({ name, what }) => [name, what]))(
  'in the fault %s every event counts once and none is stuck (%s)',
  (name) => {
    const result = results.find(({ fault }) => fault === name);
    expect(result).toMatchObject({ differences: [], stuck: 0 });
    expect(result?.events).toBeGreaterThan(0);
  },
);
