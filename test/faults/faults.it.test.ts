/** Three faults in their short form, one after the other on the same servers; `npm run test:full` runs each fault of the table. */
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { playAll, RUN_WITHIN_MS, type RunResult } from './suite.js';
import { FAULTS } from './table.js';

const CANARIES = ['worker-killed', 'clickhouse-swallows', 'producer-killed'];

// Longer than the limit of a run, so that the suite can name a run that hangs.
jest.setTimeout(1.5 * CANARIES.length * RUN_WITHIN_MS);

const stop = new AbortController();
let results: RunResult[];
beforeAll(async () => {
  const faults = FAULTS.filter(({ name }) => CANARIES.includes(name));
  const options = { rounds: 1, parallel: 1, brief: true, signal: stop.signal, say: () => undefined };
  results = await playAll(faults, { ...options, seed: Date.now() % 1_000_000 });
});
afterAll(() => stop.abort());

it.each(CANARIES)('in the fault %s every event counts once and no job is stuck', (name) => {
  const result = results.find(({ fault }) => fault === name);
  expect(result).toMatchObject({ differences: [], stuck: 0 });
  expect(result?.events).toBeGreaterThan(0);
});
