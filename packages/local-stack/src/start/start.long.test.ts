/** Tests `npm start` with kills and restarts, a copied data directory, a closed output, and a dead parent process. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, readdir } from 'node:fs/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import {
  arePortsFree,
  MY_AGENT,
  queryGroups,
  readAddresses,
  type Started,
  startEnvironment,
  startedSummary,
  startStack,
} from '../../../../test/harness/npm-start.js';
import { START } from '../../../../test/harness/programs.js';
import { testFolder } from '../../../../test/harness/test-folder.js';

let stack: Started;
// Declared before the folder, whose hook removes the data.
afterEach(async () => {
  const { child } = stack;
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
});
const folder = testFolder('each test');
const dataDir = () => folder('data');
beforeEach(async () => {
  stack = await startStack(dataDir());
});

async function redisPid(url: string): Promise<number> {
  const redis = new Redis(url);
  try {
    return Number(/^process_id:(\d+)/m.exec(await redis.info('server'))?.[1]);
  } finally {
    redis.disconnect();
  }
}

it('npm start keeps its keys after a kill and a restart', async () => {
  const { adminKey, emitterKey } = await readAddresses(dataDir());
  stack.child.kill('SIGKILL');
  await once(stack.child, 'exit');
  stack = await startStack(dataDir());
  expect(await readAddresses(dataDir())).toMatchObject({ adminKey, emitterKey });
});

it('npm start keeps running when the reader of its output exits, as with `npm start | head`', async () => {
  const { redisUrl } = await readAddresses(dataDir());
  stack.child.stdout?.destroy();
  stack.child.stderr?.destroy();
  const before = await redisPid(redisUrl);
  // The stack prints two lines, because Redis ends and restarts.
  process.kill(before, 'SIGKILL');
  while ((await redisPid(redisUrl)) === before);
  expect(stack.child.exitCode).toBeNull();
});

it('npm start runs in a copy of a data directory, and ends when its parent process is gone', async () => {
  const { collectorUrl, emitterKey } = await readAddresses(dataDir());
  const sent = await fetch(`${collectorUrl}/v0/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${emitterKey}`, 'content-type': 'application/json', connection: 'close' },
    body: /-d '(.*)'/.exec(stack.summary)?.[1] ?? '',
  });
  expect(sent.status).toBe(202);
  while ((await queryGroups(stack.summary)).length === 0);
  stack.child.kill('SIGTERM');
  await once(stack.child, 'exit');

  const copy = folder('copy');
  await cp(dataDir(), copy, { recursive: true });
  const env = { ...startEnvironment(copy, ''), npm_lifecycle_event: 'start' };
  const shell = spawn('sh', ['-c', `"${process.execPath}" "${START}" --no-demo; true`], { env });
  expect(await queryGroups(await startedSummary(shell))).toMatchObject([MY_AGENT]);
  const addresses = await readAddresses(copy);
  shell.kill('SIGTERM');
  // The stack has inherited the output of the shell, so this waits for both processes.
  await once(shell, 'close');
  expect(await arePortsFree(addresses)).toBe(true);
  expect(await readdir(copy)).not.toContain('local.json');
});
