import { expect, it } from '@jest/globals';
import { isFull } from './servers.js';

const memory = (used: number, limit: number, notCounted = 0) =>
  `# Memory\r\nused_memory:${used}\r\nused_memory_rss:9999999\r\nmaxmemory:${limit}\r\nmaxmemory_policy:noeviction\r\nmem_not_counted_for_evict:${notCounted}\r\n`;

it.each([
  ['without a limit', false, memory(5_000, 0)],
  ['below its limit', false, memory(4_999, 5_000)],
  ['above its limit', true, memory(5_001, 5_000)],
  ['above it with what does not count', false, memory(5_100, 5_000, 200)],
  ['that says nothing', false, ''],
])('a Redis %s is full: %s', (_, expected, info) => {
  expect(isFull(info)).toBe(expected);
});
