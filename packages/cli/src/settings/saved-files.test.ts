import { chmod, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { configFilePath, findLocalStack, readConfigFile, removeConfigFile, writeConfigFile } from './saved-files.js';
import { readEnvironment } from './settings.js';

const LOGIN = { apiUrl: 'https://billing.example.com', apiKey: 'mlk_x', account: 'acme' };

let directory: string;
let path: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'meterline-config-'));
  path = join(directory, 'meterline', 'config.json');
});
afterEach(() => rm(directory, { recursive: true }));

describe('the file of a login', () => {
  it('can be read by its owner alone, and nothing else stays behind', async () => {
    await writeConfigFile(path, { ...LOGIN, account: 'before' });
    await writeConfigFile(path, LOGIN);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(dirname(path))).mode & 0o777).toBe(0o700);
    expect(await readdir(dirname(path))).toEqual(['config.json']);
    expect(await readConfigFile(path)).toEqual({ path, login: LOGIN, isOpen: false });
  });

  it('says when others can read it', async () => {
    await writeConfigFile(path, LOGIN);
    await chmod(path, 0o640);
    expect((await readConfigFile(path))?.isOpen).toBe(true);
  });

  it('may be missing', async () => {
    expect(await readConfigFile(path)).toBeUndefined();
    expect(await removeConfigFile(path)).toBe(false);
    await writeConfigFile(path, LOGIN);
    expect(await removeConfigFile(path)).toBe(true);
    expect(await readConfigFile(path)).toBeUndefined();
  });

  it.each(['', '{"apiUrl', '{"apiUrl":"x","apiKey":"k"}', '{"apiUrl":"https://x","apiKey":""}'])(
    'is refused when it holds %j',
    async (text) => {
      const file = join(directory, 'config.json');
      await writeFile(file, text);
      await expect(readConfigFile(file)).rejects.toMatchObject({ exitCode: 2, message: expect.stringContaining(file) });
    },
  );

  it.each([
    [{ METERLINE_CONFIG: '/a/b.json', XDG_CONFIG_HOME: '/x', HOME: '/h' }, '/a/b.json'],
    [{ XDG_CONFIG_HOME: '/x', HOME: '/h' }, '/x/meterline/config.json'],
    [{ HOME: '/h' }, '/h/.config/meterline/config.json'],
  ])('with %j it is %s', (variables, expected) => {
    expect(configFilePath(readEnvironment(variables))).toBe(expected);
  });
});

const ADDRESSES = {
  apiUrl: 'http://127.0.0.1:1',
  redisUrl: 'redis://127.0.0.1:2',
  clickhouseUrl: 'http://127.0.0.1:3',
  clickhouseUser: 'meterline',
  clickhousePassword: 'of the stack',
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

  it('is refused with every fault, each with its place', async () => {
    const faulty = {
      ...ADDRESSES,
      redisUrl: 'nowhere',
      clickhouseUser: '',
      clickhousePassword: null,
      memberKey: 7,
      emitterKey: [],
    };
    await write(join(root, '.meterline'), JSON.stringify({ ...faulty, account: undefined }));
    const text = 'Invalid input: expected string, received';
    await expect(findLocalStack(undefined, root)).rejects.toMatchObject({
      message: expect.stringContaining(
        `(redisUrl: Invalid URL; emitterKey: ${text} array; clickhouseUser: Too small: expected string to have >=1 characters; ` +
          `clickhousePassword: ${text} null; account: ${text} undefined; memberKey: ${text} number)`,
      ),
    });
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
