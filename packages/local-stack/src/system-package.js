/**
 * Finds programs on PATH, and installs them with the system's package manager where that needs no prompt. Plain JavaScript that imports
 * Node's own modules only, because scripts/make-ready.mjs uses it before packages are installed and TypeScript is compiled.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';

/**
 * @typedef {object} PackageManager
 * @property {readonly string[]} install the command, to which the package's name is added
 * @property {readonly string[]} [update] downloads the lists of packages
 * @property {readonly string[]} [after] runs after an installation, with the package's name; may fail
 *
 * @typedef {object} WantedProgram
 * @property {string} program
 * @property {Readonly<Record<string, string>>} names the package's name, by package manager
 * @property {NodeJS.ProcessEnv} env provides PATH, and is passed to the package manager
 * @property {((line: string) => void) | undefined} [say] called with one line before the machine is changed
 */

/** RUNLEVEL=1 keeps Debian's packages from starting daemons on their default ports. The lock may be held by another installation. */
const APT = ['env', 'RUNLEVEL=1', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-qq', '-o', 'DPkg::Lock::Timeout=120'];

/**
 * In the order in which they are tried.
 * @type {Readonly<Record<string, PackageManager>>}
 */
const PACKAGE_MANAGERS = {
  'apt-get': {
    install: [...APT, 'install', '-y', '--no-install-recommends'],
    update: [...APT, 'update'],
    // systemd ignores RUNLEVEL.
    after: ['systemctl', 'disable', '--now'],
  },
  dnf: { install: ['dnf', 'install', '-y', '-q'] },
  apk: { install: ['apk', 'add', '--no-cache'] },
  brew: { install: ['brew', 'install', '--quiet'] },
};

/** @type {Pick<WantedProgram, 'program' | 'names'>} */
export const REDIS = {
  program: 'redis-server',
  names: { 'apt-get': 'redis-server', dnf: 'redis', apk: 'redis', brew: 'redis' },
};

/**
 * Installs a program.
 * @param {WantedProgram} wanted
 * @returns {Promise<string | undefined>} the package manager used; undefined if none can install without a prompt
 * @throws Error with the package manager's own reason, in one line
 */
export async function installProgram({ program, names, env, say }) {
  for (const [tool, { install, update, after }] of Object.entries(PACKAGE_MANAGERS)) {
    const name = names[tool];
    if (!name || !(await findExecutable(tool, env))) continue;
    const isAllowed = tool === 'brew' || process.getuid?.() === 0;
    if (!isAllowed && !(await maySudo(env))) continue;
    say?.(`Installing ${program} with ${tool}…`);
    /** @param {readonly string[]} command */
    const runAllowed = (...command) => run(isAllowed ? command : ['sudo', '-n', ...command], env);
    const installPackage = () => runAllowed(...install, name);
    try {
      // Most machines have the lists of packages, and downloading them takes as long as the package.
      await installPackage().catch(async (error) => {
        if (!update) throw error;
        // A mirror may fail here and still have the package.
        await runAllowed(...update).catch(() => undefined);
        await installPackage();
      });
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`${tool} could not install ${program} (${reason})`, { cause });
    }
    // Most machines have no such service, or no systemd.
    if (after) await runAllowed(...after, name).catch(() => undefined);
    return tool;
  }
  return undefined;
}

/**
 * Runs a command to its end.
 * @param {readonly string[]} command
 * @param {NodeJS.ProcessEnv} env
 * @throws Error with the last line of its standard error
 */
async function run([file = '', ...args], env) {
  const child = spawn(file, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const [[code, signal], errors] = await Promise.all([once(child, 'close'), text(child.stderr)]);
  if (code !== 0) throw new Error(errors.trim().split('\n').at(-1) || `exit code ${code ?? signal}`);
}

/** @param {NodeJS.ProcessEnv} env */
async function maySudo(env) {
  if (!(await findExecutable('sudo', env))) return false;
  return run(['sudo', '-n', 'true'], env).then(
    () => true,
    () => false,
  );
}

/**
 * The first executable of that name on PATH.
 * @param {string} name
 * @param {NodeJS.ProcessEnv} env
 */
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
