/** Begins with the files that take longest, which Jest itself knows only after a first run: none of them runs alone at the end. */
import TestSequencer from '@jest/test-sequencer';

const LONGEST = [
  'retention/interleavings',
  'rollups/interleavings',
  'faults/faults',
  'guides/guides',
  'cli/operators',
  'oracle/oracle',
  'shards/shards',
  'start/start.it',
];

export default class LongestFirst extends TestSequencer {
  sort(tests) {
    const rank = ({ path }) =>
      (LONGEST.findIndex((name) => path.includes(name)) + LONGEST.length + 1) % (LONGEST.length + 1);
    return super.sort(tests).sort((a, b) => rank(a) - rank(b));
  }
}
