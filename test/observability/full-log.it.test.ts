/** A disk that takes no more lines costs the log, not the service. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { findFreePort } from '@meterline/local-stack';
import { type Product, startProduct } from '../harness/product.js';
import { openFull } from '../harness/programs.js';

let product: Product;
beforeAll(async () => {
  product = await startProduct();
});
afterAll(() => product.close());

/** A service as `node services/<name>/dist/main.js > /dev/full` starts it. */
async function start(name: 'ingest' | 'query', variables: Record<string, string> = {}) {
  const main = fileURLToPath(new URL(`../../services/${name}/dist/main.js`, import.meta.url));
  const [apiPort, adminPort] = [await findFreePort(), await findFreePort()];
  const ports = { PORT: String(apiPort), ADMIN_PORT: String(adminPort), CURSOR_SECRET: 'x'.repeat(32) };
  const full = openFull();
  const child = spawn(process.execPath, [main], {
    stdio: ['ignore', full, 'pipe', 'ipc'],
    env: { ...ports, LOG_LEVEL: 'debug', ...product.env, ...variables },
  });
  closeSync(full);
  const ended = Promise.all([once(child, 'exit'), child.stderr ? text(child.stderr) : '']);
  return {
    child,
    url: `http://127.0.0.1:${name === 'query' ? apiPort : adminPort}`,
    /** The exit code, and what it wrote to standard error. */
    ended: ended.then(([[code], stderr]) => ({ code, stderr })),
  };
}

it.each([
  ['query', '/readyz'],
  ['ingest', '/healthz'],
] as const)('with its log on a full disk, %s starts, answers, and stops with code 0', async (name, path) => {
  const { child, url, ended } = await start(name);
  const ask = () => fetch(`${url}${path}`, { headers: { connection: 'close' } });
  while (!(await ask().catch(() => undefined))) {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`);
    await sleep(20);
  }
  // Each has a line of its own.
  for (let request = 0; request < 20; request += 1) expect((await ask()).status).toBe(200);
  child.kill('SIGTERM');
  expect(await ended).toEqual({ code: 0, stderr: '' });
});

it('with its log on a full disk, a service that cannot start ends with code 1 and says why', async () => {
  const { ended } = await start('query', { CLICKHOUSE_URL: `http://127.0.0.1:${await findFreePort()}` });
  expect(await ended).toEqual({ code: 1, stderr: expect.stringMatching(/^meterline-query: ClickHouse at .*\n$/) });
});
