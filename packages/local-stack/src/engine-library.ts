import { createRequire } from 'node:module';
import { LocalStackError } from './errors.js';

/** The packages that hold the engine, as `chdb` lists them among its optional dependencies (there is none for musl). */
const ENGINE_PACKAGES: Readonly<Record<string, string>> = {
  'darwin-arm64': '@chdb/lib-darwin-arm64',
  'darwin-x64': '@chdb/lib-darwin-x64',
  'linux-arm64': '@chdb/lib-linux-arm64-gnu',
  'linux-x64': '@chdb/lib-linux-x64-gnu',
};

export interface Platform {
  platform: string;
  arch: string;
}

/**
 * The path of the engine's shared library on this machine.
 *
 * @param resolve finds a file of an installed package, or throws
 * @throws LocalStackError `unsupported_platform`
 */
export function findEngineLibrary(
  { platform, arch }: Platform = process,
  resolve: (file: string) => string = resolveBesideChdb,
): string {
  const key = `${platform}-${arch}`;
  const engine = ENGINE_PACKAGES[key];
  try {
    if (engine) return resolve(`${engine}/libchdb.so`);
  } catch (cause) {
    throw unsupported(`The embedded ClickHouse is not installed for ${key} (package ${engine} is missing)`, { cause });
  }
  throw unsupported(`There is no embedded ClickHouse for ${key}`);
}

function unsupported(problem: string, options?: ErrorOptions): LocalStackError {
  const platforms = Object.keys(ENGINE_PACKAGES).sort().join(', ');
  return new LocalStackError(
    'unsupported_platform',
    `${problem}. It exists for ${platforms} (Linux with glibc); elsewhere set CLICKHOUSE_URL to a server of your own.`,
    options,
  );
}

/** The engine is chdb's dependency, not ours, so it is looked up from there. */
function resolveBesideChdb(file: string): string {
  const chdb = createRequire(import.meta.url).resolve('chdb');
  return createRequire(chdb).resolve(file);
}
