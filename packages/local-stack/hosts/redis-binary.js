/**
 * Finds or installs redis-server. Plain JavaScript with Node built-ins only, because `scripts/bootstrap.mjs` needs it
 * before anything is installed or compiled. Types and contracts: redis-binary.d.ts.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { findExecutable, installProgram } from './system-package.js';

const run = promisify(execFile);

/** BullMQ needs 6.2. */
const OLDEST_VERSION = [6, 2];
const WAY_OUT = 'install Redis 6.2 or newer so that redis-server is on PATH, or set REDIS_URL to a server of your own';

/** By package manager. */
const PACKAGE_NAMES = { 'apt-get': 'redis-server', dnf: 'redis', apk: 'redis', brew: 'redis' };

export class RedisUnavailableError extends Error {
  name = 'RedisUnavailableError';
}

export async function ensureRedisServer({ env = process.env, say = () => {} } = {}) {
  const present = await findExecutable('redis-server', env);
  if (present) return requireUsable(present);

  const tool = await install(env, say);
  if (!tool) throw new RedisUnavailableError(`redis-server is not on PATH: ${WAY_OUT}.`);

  const installed = await findExecutable('redis-server', env);
  if (!installed) throw new RedisUnavailableError(`${tool} put no redis-server on PATH: ${WAY_OUT}.`);
  return requireUsable(installed);
}

async function install(env, say) {
  try {
    return await installProgram({ program: 'redis-server', names: PACKAGE_NAMES, env, say });
  } catch (error) {
    throw new RedisUnavailableError(`${error.message}: ${WAY_OUT}.`, { cause: error });
  }
}

async function requireUsable(binary) {
  const { stdout } = await run(binary, ['--version']);
  const version = /\bv=(\d+)\.(\d+)/.exec(stdout)?.slice(1).map(Number) ?? [0, 0];
  const [major, minor] = version;
  const usable = major > OLDEST_VERSION[0] || (major === OLDEST_VERSION[0] && minor >= OLDEST_VERSION[1]);
  if (!usable) throw new RedisUnavailableError(`${binary} is version ${major}.${minor}: ${WAY_OUT}.`);
  return binary;
}
