/** How a query process ends. Why one does not start is in test/e2e/start-up. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { z } from 'zod';
import { databaseVariables, testRedisUrl } from '../harness/stack.js';
import { testDatabase } from '../harness/test-database.js';

const MAIN = fileURLToPath(new URL('../../services/query/dist/main.js', import.meta.url));

const database = testDatabase();

interface Ended {
  readonly code: number | null;
  readonly stderr: string;
}

function start(variables: Record<string, string>): { child: ChildProcess; ended: Promise<Ended> } {
  const child = fork(MAIN, {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: {
      PORT: '0',
      CURSOR_SECRET: 'a secret of the process tests, 32 characters or more',
      REDIS_URL: testRedisUrl(),
      ...databaseVariables(database.options),
      ...variables,
    },
  });
  // Not the child's 'close': Node does not emit it once the parent has disconnected.
  const ended = Promise.all([once(child, 'exit'), child.stderr ? text(child.stderr) : '']);
  return { child, ended: ended.then(([[code], stderr]) => ({ code, stderr })) };
}

const listening = z.object({ msg: z.literal('listening'), port: z.number() });

/** Starts the service and waits until it accepts requests. */
async function startListening(variables: Record<string, string> = {}) {
  const { child, ended } = start(variables);
  if (!child.stdout) throw new Error('the child has no standard output');
  for await (const line of createInterface({ input: child.stdout })) {
    const ready = listening.safeParse(JSON.parse(line));
    if (ready.success) return { child, ended, url: `http://127.0.0.1:${ready.data.port}` };
  }
  throw new Error(`it ended instead: ${JSON.stringify(await ended)}`);
}

const kill = (signal: NodeJS.Signals) => async (child: ChildProcess) => {
  const rest = child.stdout ? text(child.stdout) : '';
  child.kill(signal);
  expect(await rest).toMatch(/"event":"stopped".*\n$/);
};

it.each<[string, (child: ChildProcess, url: string) => unknown]>([
  ['after SIGTERM', kill('SIGTERM')],
  ['after SIGINT', kill('SIGINT')],
  ['when its parent goes away', (child) => child.disconnect()],
  [
    'when the reader of its log is gone',
    (child) => {
      child.stdout?.destroy();
      child.kill('SIGTERM');
    },
  ],
  [
    'when the reader of its log has stalled',
    async (child, url) => {
      child.stdout?.pause();
      const long = `${url}/${'x'.repeat(4_000)}`;
      const statuses = await Promise.all(Array.from({ length: 100 }, async () => (await fetch(long)).status));
      expect(new Set(statuses)).toEqual(new Set([404]));
      child.kill('SIGTERM');
      await once(child, 'exit');
      child.stdout?.resume();
    },
  ],
])('a query process stops with code 0 %s', async (_when, end) => {
  const { child, ended, url } = await startListening();
  expect((await fetch(`${url}/readyz`)).status).toBe(200);
  await end(child, url);
  expect(await ended).toEqual({ code: 0, stderr: '' });
});

it('a query process stops with code 0 when its parent goes away while it starts', async () => {
  const { child, ended } = start({});
  child.disconnect();
  expect(await ended).toEqual({ code: 0, stderr: '' });
});

it('after a request to stop the process is not ready, and closes connections after their answers', async () => {
  const { child, ended, url } = await startListening({ STOP_DELAY_MS: '60000' });
  child.kill('SIGTERM');
  let answer = await fetch(`${url}/readyz`);
  while (answer.status === 200) answer = await fetch(`${url}/readyz`);
  expect([answer.status, answer.headers.get('connection'), await answer.json()]).toEqual([
    503,
    'close',
    expect.objectContaining({ error: 'not_ready', message: expect.stringContaining('is stopping') }),
  ]);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  child.kill('SIGKILL');
  expect(await ended).toEqual({ code: null, stderr: '' });
});
