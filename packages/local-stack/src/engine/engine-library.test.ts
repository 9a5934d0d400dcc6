import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { findEngineLibrary } from './clickhouse.js';

const installed = (file: string) => `/modules/${file}`;
const missing = () => {
  throw new Error('Cannot find module');
};

describe('findEngineLibrary', () => {
  it('finds the library of this machine', () => {
    expect(existsSync(findEngineLibrary())).toBe(true);
  });

  it.each([
    ['linux', 'x64', '/modules/@chdb/lib-linux-x64-gnu/libchdb.so'],
    ['linux', 'arm64', '/modules/@chdb/lib-linux-arm64-gnu/libchdb.so'],
    ['darwin', 'arm64', '/modules/@chdb/lib-darwin-arm64/libchdb.so'],
  ])('knows the package for %s on %s', (platform, arch, library) => {
    expect(findEngineLibrary({ platform, arch }, installed)).toBe(library);
  });

  it('says in one line what to do on a platform without an engine', () => {
    expect(() => findEngineLibrary({ platform: 'win32', arch: 'x64' }, installed)).toThrow(
      /^There is no embedded ClickHouse for win32-x64\. It exists for darwin-arm64, .*; elsewhere set CLICKHOUSE_URL to a server of your own\.$/,
    );
  });

  it('says so when the package of a known platform is not installed', () => {
    expect(() => findEngineLibrary({ platform: 'linux', arch: 'x64' }, missing)).toThrow(
      /^The embedded ClickHouse is not installed for linux-x64 \(package @chdb\/lib-linux-x64-gnu is missing\)\..*CLICKHOUSE_URL.*$/,
    );
  });
});

describe('engine.js', () => {
  it('ends before it opens the library when its disk has too little space left, and says so', () => {
    const script = fileURLToPath(new URL('../../hosts/engine.js', import.meta.url));
    const { signal, stderr } = spawnSync(process.execPath, [script, 'no-library', '1e18'], { encoding: 'utf8' });
    expect(signal).toBe('SIGKILL');
    expect(stderr).toMatch(
      /^The disk of \/.* has \d+ MiB left\. The embedded ClickHouse needs 953674316406 MiB: it stops, so that nothing is lost\. Free some space\.\n$/,
    );
  });
});
