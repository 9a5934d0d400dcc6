import { expect, it } from '@jest/globals';
import { openAdminServer } from './admin-server.js';
import { createLog } from './log.js';

it('the admin port answers 503 to a page that fails, and logs its path without the query string', async () => {
  const lines: string[] = [];
  const log = createLog('meterline-test', 'info', { write: (line) => void lines.push(line) });
  const health = () => Promise.reject(new Error('Redis did not answer'));
  const metrics = { contentType: 'text/plain', metrics: async () => 'up 1\n' };
  const server = await openAdminServer({ port: 0, host: '127.0.0.1' }, { health, metrics }, log);
  try {
    const status = async (path: string) => (await fetch(`http://127.0.0.1:${server.port}${path}`)).status;
    expect(await status('/metrics?match=up')).toBe(200);
    expect(await status('/healthz?token=s3cret')).toBe(503);
    expect(await status('/other')).toBe(404);
  } finally {
    await server.close();
  }
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ event: 'admin_request_failed', path: '/healthz' }]);
  expect(lines.join()).not.toContain('s3cret');
});
