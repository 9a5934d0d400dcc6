import { expect, it } from '@jest/globals';
import { isFull } from './servers.js';

const memory = (used: number, limit: number, notCounted = 0) =>
  `# Memory\r\nused_memory:${used}\r\nused_memory_rss:9999999\r\nmaxmemory:${limit}\r\nmaxmemory_policy:noeviction\r\nmem_not_counted_for_evict:${notCounted}\r\n`;

it.each([
  ['without a limit', memory(5_000, 0), false],
  ['below its limit', memory(4_999, 5_000), false],
  ['above its limit', memory(5_001, 5_000), true],
  ['above it with what does not count', memory(5_100, 5_000, 200), false],
  ['that says nothing', '', false],
])('a Redis %s', (_, info, expected) => {
  expect(isFull(info)).toBe(expected);
});
