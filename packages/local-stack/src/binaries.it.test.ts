/** The programs that the local servers are: found, installed, or said to be missing with what to do. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { expect, it } from '@jest/globals';
import { testFolder } from '../../../test/harness/test-folder.js';
import { findEngineLibrary } from './clickhouse.js';
import { ensureRedisServer } from './redis.js';
import { programFile } from './server-process.js';

const SHELL = '/bin/sh';
const bin = testFolder('each test');

const program = (name: string, script: string) => writeFile(bin(name), `#!${SHELL}\n${script}\n`, { mode: 0o755 });

it('the engine is the library of this machine, or is said to be missing, with what to do', () => {
  expect(existsSync(findEngineLibrary())).toBe(true);
  const message = /^chdb: .*\. The embedded ClickHouse exists for macOS and for Linux.* set CLICKHOUSE_URL to .*\.$/;
  expect(() => findEngineLibrary({ CHDB_LIBCHDB_PATH: '/nowhere' })).toThrow(message);
});

it('the engine ends before it opens the library when its disk has too little space left, and says so', () => {
  const args = [programFile('engine'), 'no-library', '1e18'];
  const { signal, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  expect(signal).toBe('SIGKILL');
  expect(stderr).toMatch(
    /^The disk of \/.* has \d+ MiB left\. The embedded ClickHouse needs 953674316406 MiB: it stops, so that nothing is lost\. Free some space\.\n$/,
  );
});

it('the redis-server is the one on PATH, or is installed with the package manager, which is said', async () => {
  const server = bin('redis-server');
  const said: string[] = [];
  const ensure = () => ensureRedisServer({ env: { PATH: bin() }, say: (line) => said.push(line) });
  await program('brew', `printf '#!${SHELL}\\necho Redis server v=8.0.1\\n' > ${server}; /bin/chmod +x ${server}`);
  expect(await ensure()).toBe(server);
  expect(await ensure()).toBe(server);
  expect(said).toEqual(['Installing redis-server with brew…']);
});

const TO_DO = 'install Redis 7 or newer so that redis-server is on PATH, or set REDIS_URL to a server of your own.';

it.each([
  ['is missing', '', '', 'redis-server is not on PATH'],
  ['is too old', 'redis-server', 'echo "Redis server v=6.2.16 sha=0"', 'is version 6.2'],
  ['cannot be installed', 'brew', 'echo "no network" >&2; exit 1', 'brew could not install redis-server (no network)'],
])('a redis-server that %s is said to be so, with what to do', async (_, name, script, problem) => {
  if (name !== '') await program(name, script);
  await expect(ensureRedisServer({ env: { PATH: bin() } })).rejects.toThrow(`${problem}: ${TO_DO}`);
});
