import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';

/**
 * A folder of the test file's own, or of each of its tests. It is removed before what the file's own `afterAll` or `afterEach` does: a
 * server that lives in it must have stopped.
 * @returns the path of a name in it; without a name, its own
 */
export function testFolder(of: 'file' | 'each test' = 'file'): (...names: string[]) => string {
  let path = '';
  const [before, after] = of === 'file' ? [beforeAll, afterAll] : [beforeEach, afterEach];
  before(async () => {
    path = await mkdtemp(join(tmpdir(), 'meterline-'));
  });
  after(() => rm(path, { recursive: true, force: true, maxRetries: 20 }));
  return (...names) => {
    if (path === '') throw new Error('the folder is made when the first test of the file begins');
    return join(path, ...names);
  };
}
