import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { findEngineLibrary } from './clickhouse.js';
import { programFile } from './server-process.js';

describe('findEngineLibrary', () => {
  it('finds the library of this machine, and knows the packages of others', () => {
    expect(existsSync(findEngineLibrary())).toBe(true);
    const of = (platform: 'linux' | 'darwin') => findEngineLibrary({ platform, arch: 'arm64' }, (file) => file);
    expect([of('linux'), of('darwin')]).toEqual([
      '@chdb/lib-linux-arm64-gnu/libchdb.so',
      '@chdb/lib-darwin-arm64/libchdb.so',
    ]);
  });

  it('says in one line what to do where there is none, or it is not installed', () => {
    expect(() => findEngineLibrary({ platform: 'win32', arch: 'x64' })).toThrow(
      /^There is no embedded ClickHouse for win32-x64\. It exists for darwin-arm64, .*; elsewhere set CLICKHOUSE_URL to a server of your own\.$/,
    );
    const missing = () => {
      throw new Error('Cannot find module');
    };
    expect(() => findEngineLibrary({ platform: 'linux', arch: 'x64' }, missing)).toThrow(
      /^@chdb\/lib-linux-x64-gnu, the embedded ClickHouse, is not installed\..*CLICKHOUSE_URL.*$/,
    );
  });
});

describe('engine.js', () => {
  it('ends before it opens the library when its disk has too little space left, and says so', () => {
    const { signal, stderr } = spawnSync(process.execPath, [programFile('engine'), 'no-library', '1e18'], {
      encoding: 'utf8',
    });
    expect(signal).toBe('SIGKILL');
    expect(stderr).toMatch(
      /^The disk of \/.* has \d+ MiB left\. The embedded ClickHouse needs 953674316406 MiB: it stops, so that nothing is lost\. Free some space\.\n$/,
    );
  });
});
