/** The service as its own process, from its build, as production runs it. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { createTestDatabase, databaseVariables, execute, type TestDatabase, testRedisUrl } from '../stack.js';

const MAIN = fileURLToPath(new URL('../../services/query/dist/main.js', import.meta.url));

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

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

describe('the process stops with code 0', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('on %s', async (signal) => {
    const { child, ended, url } = await startListening();
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    const rest = child.stdout ? text(child.stdout) : '';
    child.kill(signal);
    expect(await ended).toEqual({ code: 0, stderr: '' });
    expect(await rest).toMatch(/"event":"stopped".*\n$/);
  });

  it('when the reader of its log is gone', async () => {
    const { child, ended } = await startListening();
    child.stdout?.destroy();
    child.kill('SIGTERM');
    expect(await ended).toEqual({ code: 0, stderr: '' });
  });

  it('when the reader of its log has stalled', async () => {
    const { child, ended, url } = await startListening();
    child.stdout?.pause();
    const long = `${url}/${'x'.repeat(4_000)}`;
    const statuses = await Promise.all(Array.from({ length: 100 }, async () => (await fetch(long)).status));
    expect(new Set(statuses)).toEqual(new Set([404]));
    child.kill('SIGTERM');
    await once(child, 'exit');
    child.stdout?.resume();
    expect(await ended).toEqual({ code: 0, stderr: '' });
  });

  it('when its parent goes away', async () => {
    const { child, ended } = await startListening();
    child.disconnect();
    expect(await ended).toEqual({ code: 0, stderr: '' });
  });

  it('when its parent goes away while it starts', async () => {
    const { child, ended } = start({});
    child.disconnect();
    expect(await ended).toEqual({ code: 0, stderr: '' });
  });
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

describe('the process does not start, says why in one line, and exits with 1', () => {
  const occupant = createServer();
  let later: TestDatabase;
  /** What each process writes. All start at once: one alone takes more than half a second. */
  let refusals: Readonly<Record<string, Promise<string>>>;
  beforeAll(async () => {
    await new Promise<void>((resolve) => occupant.listen(0, resolve));
    later = await createTestDatabase();
    await execute(
      later.warehouse,
      `INSERT INTO schema_migrations (version, name, checksum) VALUES (9999, '9999_later.sql', '${'0'.repeat(64)}')`,
    );
    refusals = {
      badPort: refusal({ PORT: 'eighty' }),
      noSecret: refusal({ CURSOR_SECRET: '' }),
      noClickHouse: refusal({ CLICKHOUSE_URL: 'http://127.0.0.1:1' }),
      wrongPassword: refusal({ CLICKHOUSE_USER: 'nobody', CLICKHOUSE_PASSWORD: 'hunter2' }),
      noRedis: refusal({ REDIS_URL: 'redis://:hunter2@127.0.0.1:1' }),
      portInUse: refusal({ PORT: String(occupiedPort()) }),
      // RFC 5737: for documentation, so nobody has it.
      foreignAddress: refusal({ LISTEN_HOST: '192.0.2.1' }),
      laterDatabase: refusal({ CLICKHOUSE_DATABASE: later.options.database }),
    };
  });
  afterAll(async () => {
    await Promise.all(Object.values(refusals));
    occupant.close();
    await later.drop();
  });

  const refusal = async (variables: Record<string, string>) => {
    const { code, stderr } = await start(variables).ended;
    return `${code} ${stderr}`;
  };
  const occupiedPort = () => {
    const address = occupant.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    return address.port;
  };
  /** The one line that the process wrote before it exited with 1. */
  const refusalOf = async (name: string) => {
    const ended = await refusals[name];
    expect(ended).toMatch(/^1 meterline-query: [^\n]+\n$/);
    return ended;
  };

  it('on a bad variable', async () => {
    expect(await refusalOf('badPort')).toContain('PORT must be a whole number');
    expect(await refusalOf('noSecret')).toContain('CURSOR_SECRET is missing');
  });

  it('without ClickHouse', async () => {
    expect(await refusalOf('noClickHouse')).toContain(
      'ClickHouse at 127.0.0.1:1 does not answer (connect ECONNREFUSED',
    );
  });

  it('with a wrong password for ClickHouse, which it does not print', async () => {
    const line = await refusalOf('wrongPassword');
    expect(line).toContain('Authentication failed');
    expect(line).not.toContain('hunter2');
  });

  it('without Redis', async () => {
    const line = await refusalOf('noRedis');
    expect(line).toContain('Redis at 127.0.0.1:1 does not answer (connect ECONNREFUSED');
    expect(line).not.toContain('hunter2');
  });

  it('when the port is in use', async () => {
    expect(await refusalOf('portInUse')).toContain(`cannot listen on port ${occupiedPort()}`);
  });

  it('when LISTEN_HOST is no address of this machine', async () => {
    expect(await refusalOf('foreignAddress')).toMatch(
      /cannot listen on port 0 of 192\.0\.2\.1; free it or set PORT to another, or LISTEN_HOST to an address of this machine \(listen EADDRNOTAVAIL/,
    );
  });

  it('when the database was migrated by a later release', async () => {
    expect(await refusalOf('laterDatabase')).toContain('9999_later.sql');
  });
});
