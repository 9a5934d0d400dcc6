/**
 * Finds or installs redis-server. Plain JavaScript with Node built-ins only, because `scripts/bootstrap.mjs` needs it
 * before anything is installed or compiled. Types and contracts: redis-binary.d.ts.
 */
import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** BullMQ needs 6.2. */
const OLDEST_VERSION = [6, 2];
const WAY_OUT = 'install Redis 6.2 or newer so that redis-server is on PATH, or set REDIS_URL to a server of your own';

/** RUNLEVEL=1 keeps Debian's package from starting a daemon on the default port. */
const DEBIAN_ENV = ['env', 'RUNLEVEL=1', 'DEBIAN_FRONTEND=noninteractive'];

/** @type {{ tool: string, asRoot: boolean, commands: string[][] }[]} in the order in which they are tried */
const PACKAGE_MANAGERS = [
  {
    tool: 'apt-get',
    asRoot: true,
    commands: [
      [...DEBIAN_ENV, 'apt-get', 'update', '-qq'],
      [...DEBIAN_ENV, 'apt-get', 'install', '-y', '-qq', '--no-install-recommends', 'redis-server'],
    ],
  },
  { tool: 'dnf', asRoot: true, commands: [['dnf', 'install', '-y', '-q', 'redis']] },
  { tool: 'apk', asRoot: true, commands: [['apk', 'add', '--no-cache', 'redis']] },
  { tool: 'brew', asRoot: false, commands: [['brew', 'install', '--quiet', 'redis']] },
];

export class RedisUnavailableError extends Error {
  name = 'RedisUnavailableError';
}

export async function ensureRedisServer({ env = process.env, say = () => {} } = {}) {
  const present = await findExecutable('redis-server', env);
  if (present) return requireUsable(present);

  const installation = await planInstallation(env);
  if (!installation) throw new RedisUnavailableError(`redis-server is not on PATH: ${WAY_OUT}.`);
  say(`Installing redis-server with ${installation.tool}…`);
  await install(installation, env);

  const installed = await findExecutable('redis-server', env);
  if (!installed) {
    throw new RedisUnavailableError(`${installation.tool} put no redis-server on PATH: ${WAY_OUT}.`);
  }
  return requireUsable(installed);
}

/** The commands that would install Redis without a prompt, or undefined if there is no such way. */
async function planInstallation(env) {
  for (const { tool, asRoot, commands } of PACKAGE_MANAGERS) {
    if (!(await findExecutable(tool, env))) continue;
    if (!asRoot || process.getuid?.() === 0) return { tool, commands };
    if (await maySudo(env)) return { tool, commands: commands.map((command) => ['sudo', '-n', ...command]) };
  }
  return undefined;
}

async function install({ tool, commands }, env) {
  for (const [command, ...args] of commands) {
    try {
      await run(command, args, { env, maxBuffer: 64 * 1024 * 1024 });
    } catch (error) {
      // A stale mirror may fail `update` and still serve `install`; only the last command decides.
      if (args.includes('update')) continue;
      const reason = String(error.stderr || error.message)
        .trim()
        .split('\n')
        .at(-1);
      throw new RedisUnavailableError(`${tool} could not install redis-server (${reason}): ${WAY_OUT}.`, {
        cause: error,
      });
    }
  }
}

async function maySudo(env) {
  if (!(await findExecutable('sudo', env))) return false;
  return run('sudo', ['-n', 'true'], { env }).then(
    () => true,
    () => false,
  );
}

async function requireUsable(binary) {
  const { stdout } = await run(binary, ['--version']);
  const version = /\bv=(\d+)\.(\d+)/.exec(stdout)?.slice(1).map(Number) ?? [0, 0];
  const [major, minor] = version;
  const usable = major > OLDEST_VERSION[0] || (major === OLDEST_VERSION[0] && minor >= OLDEST_VERSION[1]);
  if (!usable) throw new RedisUnavailableError(`${binary} is version ${major}.${minor}: ${WAY_OUT}.`);
  return binary;
}

async function findExecutable(name, env) {
  for (const directory of (env.PATH ?? '').split(delimiter).filter(Boolean)) {
    const candidate = join(directory, name);
    const executable = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (executable) return candidate;
  }
  return undefined;
}
