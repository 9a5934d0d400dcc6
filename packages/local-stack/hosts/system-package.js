/**
 * Installs a program with the system's package manager, where that needs no prompt. Plain JavaScript with Node built-ins
 * only: it runs before anything is installed or compiled.
 */
import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** RUNLEVEL=1 keeps Debian's packages from starting daemons on their default ports. */
const DEBIAN_ENV = ['env', 'RUNLEVEL=1', 'DEBIAN_FRONTEND=noninteractive'];

/** @type {{ tool: string, asRoot: boolean, commands: (name: string) => string[][] }[]} in the order in which they are tried */
const PACKAGE_MANAGERS = [
  {
    tool: 'apt-get',
    asRoot: true,
    commands: (name) => [
      [...DEBIAN_ENV, 'apt-get', 'update', '-qq'],
      [...DEBIAN_ENV, 'apt-get', 'install', '-y', '-qq', '--no-install-recommends', name],
    ],
  },
  { tool: 'dnf', asRoot: true, commands: (name) => [['dnf', 'install', '-y', '-q', name]] },
  { tool: 'apk', asRoot: true, commands: (name) => [['apk', 'add', '--no-cache', name]] },
  { tool: 'brew', asRoot: false, commands: (name) => [['brew', 'install', '--quiet', name]] },
];

/**
 * Installs a program, after printing what it is about to do.
 *
 * @param {{ program: string, names: Record<string, string>, env: Record<string, string | undefined>, say: (line: string) => void }} wanted
 *   `names` has the package's name for each package manager that has it
 * @returns {Promise<string | undefined>} the package manager used; undefined if none can install without a prompt
 * @throws {Error} with the package manager's own reason, in one line
 */
export async function installProgram({ program, names, env, say }) {
  const installation = await planInstallation(names, env);
  if (!installation) return undefined;
  const { tool, commands } = installation;
  say(`Installing ${program} with ${tool}…`);
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
      throw new Error(`${tool} could not install ${program} (${reason})`, { cause: error });
    }
  }
  return tool;
}

/** The commands that would install it without a prompt, or undefined if there is no such way. */
async function planInstallation(names, env) {
  for (const { tool, asRoot, commands } of PACKAGE_MANAGERS) {
    const name = names[tool];
    if (!name || !(await findExecutable(tool, env))) continue;
    if (!asRoot || process.getuid?.() === 0) return { tool, commands: commands(name) };
    if (await maySudo(env)) return { tool, commands: commands(name).map((command) => ['sudo', '-n', ...command]) };
  }
  return undefined;
}

async function maySudo(env) {
  if (!(await findExecutable('sudo', env))) return false;
  return run('sudo', ['-n', 'true'], { env }).then(
    () => true,
    () => false,
  );
}

/** The first of that name on PATH. */
export async function findExecutable(name, env) {
  for (const directory of (env.PATH ?? '').split(delimiter).filter(Boolean)) {
    const candidate = join(directory, name);
    if (await isExecutable(candidate)) return candidate;
  }
  return undefined;
}

export async function isExecutable(path) {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
