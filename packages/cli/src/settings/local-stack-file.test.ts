import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { findLocalStack } from './saved-files.js';

const ADDRESSES = {
  apiUrl: 'http://127.0.0.1:1',
  redisUrl: 'redis://127.0.0.1:2',
  clickhouseUrl: 'http://127.0.0.1:3',
  clickhouseDatabase: 'meterline',
  account: 'demo',
  adminKey: 'a',
  memberKey: 'm',
};

describe('the file of a running local stack', () => {
  let outside: string;
  let root: string;
  let below: string;

  beforeEach(async () => {
    outside = await mkdtemp(join(tmpdir(), 'meterline-cli-'));
    root = join(outside, 'project');
    below = join(root, 'packages', 'cli');
    await mkdir(below, { recursive: true });
  });

  afterEach(() => rm(outside, { recursive: true }));

  async function write(dataDir: string, content: string): Promise<string> {
    await mkdir(dataDir, { recursive: true });
    await writeFile(join(dataDir, 'local.json'), content);
    return join(dataDir, 'local.json');
  }

  it('is found from below, up to the root of the project', async () => {
    await writeFile(join(root, 'package-lock.json'), '{}');
    const path = await write(join(root, '.meterline'), JSON.stringify(ADDRESSES));
    expect(await findLocalStack(undefined, below)).toEqual({ path, addresses: ADDRESSES });
  });

  it('is not taken from above the project', async () => {
    await writeFile(join(root, 'package-lock.json'), '{}');
    await write(join(outside, '.meterline'), JSON.stringify(ADDRESSES));
    expect(await findLocalStack(undefined, below)).toBeUndefined();
  });

  it('is looked for only in METERLINE_DATA_DIR when that is set', async () => {
    await write(join(root, '.meterline'), JSON.stringify(ADDRESSES));
    const path = await write(join(root, 'elsewhere'), JSON.stringify(ADDRESSES));
    expect((await findLocalStack('elsewhere', root))?.path).toBe(path);
    expect(await findLocalStack('nowhere', root)).toBeUndefined();
  });

  it.each([
    ['is not JSON', '{"apiUrl'],
    ['lacks an address', JSON.stringify({ ...ADDRESSES, redisUrl: undefined })],
  ])('is an error that names it when it %s', async (_fault, content) => {
    const path = await write(join(root, '.meterline'), content);
    await expect(findLocalStack(undefined, root)).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining(path),
    });
  });
});
