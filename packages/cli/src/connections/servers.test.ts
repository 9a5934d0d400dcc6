import { expect, it } from '@jest/globals';
import { reportsItsDisk } from './servers.js';

it.each([
  ['7.0.15', 1, false],
  ['7.1.9', 1, false],
  ['7.2.0', 1, true],
  ['7.4.1', 0, false],
  ['8.0.0', 1, true],
])('whether Redis %s with aof_enabled:%d can say what is on its disk: %s', (version, aof, reports) => {
  const server = `# Server\r\nredis_version:${version}\r\nredis_git_sha1:00000000\r\n`;
  const persistence = `# Persistence\r\nloading:0\r\naof_enabled:${aof}\r\naof_rewrite_in_progress:0\r\n`;
  expect(reportsItsDisk(server, persistence)).toBe(reports);
});
