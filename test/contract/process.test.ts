/** The service as its own process, from its build, as production runs it. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { createTestDatabase, execute, type TestDatabase, testRedisUrl } from '../stack.js';

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
      CLICKHOUSE_URL: database.options.url,
      CLICKHOUSE_DATABASE: database.options.database,
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

  it('when nobody reads its log any more', async () => {
    const { child, ended } = await startListening();
    child.stdout?.destroy();
    child.kill('SIGTERM');
    expect(await ended).toEqual({ code: 0, stderr: '' });
  });

  it('when whoever reads its log has stalled', async () => {
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

describe('the process does not start, says why in one line, and exits with 1', () => {
  const refusal = async (variables: Record<string, string>) => {
    const { code, stderr } = await start(variables).ended;
    expect(code).toBe(1);
    expect(stderr).toMatch(/^meterline-query: [^\n]+\n$/);
    return stderr;
  };

  it('on a bad variable', async () => {
    expect(await refusal({ PORT: 'eighty' })).toContain('PORT must be a whole number');
    expect(await refusal({ CURSOR_SECRET: '' })).toContain('CURSOR_SECRET is missing');
  });

  it('without ClickHouse', async () => {
    expect(await refusal({ CLICKHOUSE_URL: 'http://127.0.0.1:1' })).toContain(
      'ClickHouse at 127.0.0.1:1 does not answer (connect ECONNREFUSED',
    );
  });

  it('with a wrong password for ClickHouse, which it does not print', async () => {
    const stderr = await refusal({ CLICKHOUSE_USER: 'nobody', CLICKHOUSE_PASSWORD: 'hunter2' });
    expect(stderr).toContain('Authentication failed');
    expect(stderr).not.toContain('hunter2');
  });

  it('without Redis', async () => {
    const stderr = await refusal({ REDIS_URL: 'redis://:hunter2@127.0.0.1:1' });
    expect(stderr).toContain('Redis at 127.0.0.1:1 does not answer (connect ECONNREFUSED');
    expect(stderr).not.toContain('hunter2');
  });

  it('when the port is in use', async () => {
    const occupant = createServer();
    await new Promise<void>((resolve) => occupant.listen(0, resolve));
    const address = occupant.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    expect(await refusal({ PORT: String(address.port) })).toContain(`cannot listen on port ${address.port}`);
    occupant.close();
  });

  it('when LISTEN_HOST is no address of this machine', async () => {
    // RFC 5737: for documentation, so nobody has it.
    expect(await refusal({ LISTEN_HOST: '192.0.2.1' })).toMatch(
      /cannot listen on port 0 of 192\.0\.2\.1; free it or set PORT to another, or LISTEN_HOST to an address of this machine \(listen EADDRNOTAVAIL/,
    );
  });

  it('when the database was migrated by a later release', async () => {
    const later = await createTestDatabase();
    try {
      await execute(
        later.warehouse,
        `INSERT INTO schema_migrations (version, name, checksum) VALUES (9999, '9999_later.sql', '${'0'.repeat(64)}')`,
      );
      expect(await refusal({ CLICKHOUSE_DATABASE: later.options.database })).toContain('9999_later.sql');
    } finally {
      await later.drop();
    }
  });
});
