import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ensureRedisServer } from './redis.js';

const SHELL = '/bin/sh';
let bin: string;

beforeEach(async () => {
  bin = await mkdtemp(join(tmpdir(), 'meterline-bin-'));
});
afterEach(() => rm(bin, { recursive: true }));

async function program(name: string, script: string): Promise<void> {
  const file = join(bin, name);
  await writeFile(file, `#!${SHELL}\n${script}\n`);
  await chmod(file, 0o755);
}

describe('ensureRedisServer', () => {
  it('takes the one on PATH', async () => {
    await program('redis-server', 'echo "Redis server v=7.2.4 sha=0"');
    expect(await ensureRedisServer({ env: { PATH: bin } })).toBe(join(bin, 'redis-server'));
  });

  it('refuses one that is too old', async () => {
    await program('redis-server', 'echo "Redis server v=6.2.16 sha=0"');
    await expect(ensureRedisServer({ env: { PATH: bin } })).rejects.toThrow(
      /is version 6\.2: install Redis 7 or newer/,
    );
  });

  it('says what to do when there is none and no package manager', async () => {
    await expect(ensureRedisServer({ env: { PATH: bin } })).rejects.toThrow(
      'redis-server is not on PATH: install Redis 7 or newer so that redis-server is on PATH, or set REDIS_URL to a server of your own.',
    );
  });

  it('installs one with the package manager, and says so', async () => {
    const server = join(bin, 'redis-server');
    await program('brew', `printf '#!${SHELL}\\necho v=8.0.1\\n' > ${server}; /bin/chmod +x ${server}`);
    const said: string[] = [];
    expect(await ensureRedisServer({ env: { PATH: bin }, say: (line) => said.push(line) })).toBe(server);
    expect(said).toEqual(['Installing redis-server with brew…']);
  });

  it('gives the reason when the installation fails', async () => {
    await program('brew', 'echo "no network" >&2; exit 1');
    await expect(ensureRedisServer({ env: { PATH: bin } })).rejects.toThrow(
      /^brew could not install redis-server \(no network\): install Redis/,
    );
  });
});
