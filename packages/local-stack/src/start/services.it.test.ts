/** A service that starts, beside something else that has its port. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { testRedisUrl } from '../../../../test/harness/stack.js';
import { DataDirectory } from '../data-directory.js';
import { findFreePort } from '../ports.js';
import { startService } from './services.js';

it('a service does not take the answer of another stack, which has got the port meanwhile, for its own', async () => {
  const other = createServer((_request, response) => void response.end('ready')).listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as { port: number };
  const path = await mkdtemp(join(tmpdir(), 'meterline-services-'));
  const directory = await DataDirectory.open(path);
  try {
    const adminPort = await findFreePort();
    const env = { ...process.env, REDIS_URL: testRedisUrl() };
    await expect(startService({ name: 'collector', env, port, adminPort }, directory)).rejects.toMatchObject({
      code: 'exited_early',
      message: expect.stringContaining(`cannot listen on port ${port} `),
    });
  } finally {
    directory.close();
    await rm(path, { recursive: true });
    other.close();
  }
});
