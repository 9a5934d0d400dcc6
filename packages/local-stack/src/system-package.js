/**
 * Finds programs on PATH, and installs them with the system's package manager if that needs no prompt. This file is plain JavaScript and
 * imports only built-in modules of Node, because scripts/make-ready.mjs uses it before packages are installed and TypeScript is compiled.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';

/**
 * @typedef {object} PackageManager
 * @property {readonly string[]} install command that installs the package whose name is appended
 * @property {readonly string[]} [update] command that downloads the package lists
 * @property {readonly string[]} [after] command to run after an installation, with the package name appended; may fail
 *
 * @typedef {object} SystemProgram
 * @property {string} program
 * @property {Readonly<Record<string, string>>} names package name in each package manager
 * @property {NodeJS.ProcessEnv} env provides PATH, and is passed to the package manager
 * @property {((line: string) => void) | undefined} [say] called with one line before the machine is changed
 */

/** RUNLEVEL=1 keeps Debian packages from starting daemons. With the lock timeout, apt waits for concurrent installations. */
const APT = ['env', 'RUNLEVEL=1', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-qq', '-o', 'DPkg::Lock::Timeout=120'];

/**
 * Package managers, in the order in which they are tried.
 * @type {Readonly<Record<string, PackageManager>>}
 */
const PACKAGE_MANAGERS = {
  'apt-get': {
    install: [...APT, 'install', '-y', '--no-install-recommends'],
    update: [...APT, 'update'],
    // Disable the service as well, because systemd ignores RUNLEVEL.
    after: ['systemctl', 'disable', '--now'],
  },
  dnf: { install: ['dnf', 'install', '-y', '-q'] },
  apk: { install: ['apk', 'add', '--no-cache'] },
  brew: { install: ['brew', 'install', '--quiet'] },
};

/** @type {Pick<SystemProgram, 'program' | 'names'>} */
export const REDIS = {
  program: 'redis-server',
  names: { 'apt-get': 'redis-server', dnf: 'redis', apk: 'redis', brew: 'redis' },
};

/**
 * Installs a program.
 * @param {SystemProgram} options
 * @returns {Promise<string | undefined>} the package manager used, or undefined if none can install without a prompt
 * @throws Error with the package manager's message in one line
 */
export async function installProgram({ program, names, env, say }) {
  for (const [tool, { install, update, after }] of Object.entries(PACKAGE_MANAGERS)) {
    const name = names[tool];
    if (!name || !(await findExecutable(tool, env))) continue;
    const hasRights = tool === 'brew' || process.getuid?.() === 0;
    if (!hasRights && !(await canSudo(env))) continue;
    say?.(`Installing ${program} with ${tool}…`);
    /** @param {readonly string[]} command */
    const runAsRoot = (...command) => run(hasRights ? command : ['sudo', '-n', ...command], env);
    const installPackage = () => runAsRoot(...install, name);
    try {
      // Try without an update first, because most machines have package lists and downloading the lists is slow.
      await installPackage().catch(async (error) => {
        if (!update) throw error;
        // Ignore a failed update: one mirror may fail although the package is available.
        await runAsRoot(...update).catch(() => undefined);
        await installPackage();
      });
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`${tool} could not install ${program} (${reason})`, { cause });
    }
    // Ignore the error: the command fails on machines without systemd or without such a service.
    if (after) await runAsRoot(...after, name).catch(() => undefined);
    return tool;
  }
  return undefined;
}

/**
 * Runs a command and waits for its end.
 * @param {readonly string[]} command
 * @param {NodeJS.ProcessEnv} env
 * @throws Error with the last line of standard error
 */
async function run([file = '', ...args], env) {
  const child = spawn(file, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const [[code, signal], errors] = await Promise.all([once(child, 'close'), text(child.stderr)]);
  if (code !== 0) throw new Error(errors.trim().split('\n').at(-1) || `exit code ${code ?? signal}`);
}

/** @param {NodeJS.ProcessEnv} env */
async function canSudo(env) {
  if (!(await findExecutable('sudo', env))) return false;
  return run(['sudo', '-n', 'true'], env).then(
    () => true,
    () => false,
  );
}

/** Returns the path of the first executable with this name on PATH. @param {string} name @param {NodeJS.ProcessEnv} env */
export async function findExecutable(name, env) {
  for (const directory of (env['PATH'] ?? '').split(delimiter).filter(Boolean)) {
    const candidate = join(directory, name);
    if (await isExecutable(candidate)) return candidate;
  }
  return undefined;
}

/** @param {string} path */
export async function isExecutable(path) {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
