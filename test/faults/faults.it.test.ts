/**
 * One run, in its short form, of each fault that the table marks for `npm test`. `npm run test:full` plays all of them with the program that
 * `npm run test:faults` starts.
 */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { RunResult } from './stream-run.js';
import { playAll } from './suite.js';
import { FAULTS } from './table.js';

/** A run of all takes two minutes on two cores. */
jest.setTimeout(15 * 60_000);

const PLAYED = FAULTS.filter(({ inNpmTest }) => inNpmTest);
const stop = new AbortController();
let results: RunResult[];
beforeAll(async () => {
  const seed = Date.now() % 1_000_000;
  const options = { rounds: 1, lanes: 2, brief: true, signal: stop.signal, say: () => undefined };
  results = await playAll(PLAYED, { ...options, seed });
});
afterAll(() => stop.abort());

describe('the table of faults', () => {
  it.each(PLAYED.map(({ name, victim, how, while: doing }) => [name, victim, how, doing]))(
    '%s: every event counts once and none is stuck (%s: %s, while %s)',
    (name) => {
      const result = results.find(({ fault }) => fault === name);
      expect(result).toMatchObject({ lost: [], doubled: [], stuck: 0, complaints: [] });
      expect(result?.events).toBeGreaterThan(0);
    },
  );
});
