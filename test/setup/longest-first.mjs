/** Begins with the files that take longest, which Jest itself knows only after a first run: none of them runs alone at the end. */
import TestSequencer from '@jest/test-sequencer';

const LONGEST = [
  'rollups/interleavings.long',
  'e2e/outages',
  'rollups/large-rows',
  'contract/stored-pages',
  'guides/guides',
  'retention/interleavings',
  'trace/full-trace',
  'fuzz/fuzz',
  'faults/faults',
  'oracle/oracle',
  'contract/authorisation',
  'start/start.it',
];

export default class LongestFirst extends TestSequencer {
  sort(tests) {
    const rank = ({ path }) =>
      (LONGEST.findIndex((name) => path.includes(name)) + LONGEST.length + 1) % (LONGEST.length + 1);
    return super.sort(tests).sort((a, b) => rank(a) - rank(b));
  }
}
