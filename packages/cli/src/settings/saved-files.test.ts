import { chmod, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { configFilePath, readConfigFile, removeConfigFile, writeConfigFile } from './saved-files.js';
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

  it('tells when others can read it', async () => {
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
