import { expect, it } from '@jest/globals';
import { sparkline } from './report.js';

it.each<[number[], number, string]>([
  [[0, 1, 2, 3, 4, 5, 6, 7, 8], 40, '·▁▂▃▄▅▆▇█'],
  [[0.0000001, 1_000_000], 40, '▁█'],
  [[0, 0], 40, '··'],
  [[], 40, ''],
  [[1, 1, 4, 4, 0, 0], 3, '▂█·'],
  [[1, 2, 3], 0, '█'],
])('%j in %d characters is %s', (values, width, expected) => {
  expect(sparkline(values, width)).toBe(expected);
});
