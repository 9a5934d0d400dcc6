/** Installs a program with the system's package manager, where that needs no prompt. */
import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { errorMessage } from './errors.js';

const run = promisify(execFile);
const maxBuffer = 64 * 1024 * 1024;

/**
 * RUNLEVEL=1 keeps Debian's packages from starting daemons on their default ports; systemd does not read it, and is told afterwards. Another
 * start may be installing just now.
 */
const APT = ['env', 'RUNLEVEL=1', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-qq', '-o', 'DPkg::Lock::Timeout=120'];

/** The commands of each package manager, to which the package's name is added, in the order in which they are tried. */
const PACKAGE_MANAGERS = {
  'apt-get': {
    install: [...APT, 'install', '-y', '--no-install-recommends'],
    update: [...APT, 'update'],
    after: ['systemctl', 'disable', '--now'],
  },
  dnf: { install: ['dnf', 'install', '-y', '-q'], update: undefined, after: undefined },
  apk: { install: ['apk', 'add', '--no-cache'], update: undefined, after: undefined },
  brew: { install: ['brew', 'install', '--quiet'], update: undefined, after: undefined },
} as const;
type Tool = keyof typeof PACKAGE_MANAGERS;

export interface WantedProgram {
  readonly program: string;
  /** The package's name for each package manager that has it. */
  readonly names: Readonly<Partial<Record<Tool, string>>>;
  readonly env: NodeJS.ProcessEnv;
  readonly say?: ((line: string) => void) | undefined;
}

/**
 * Installs a program, after saying what it is about to do.
 * @returns the package manager used; undefined if none can install without a prompt
 * @throws Error with the package manager's own reason, in one line
 */
export async function installProgram({ program, names, env, say }: WantedProgram): Promise<Tool | undefined> {
  for (const tool of Object.keys(PACKAGE_MANAGERS) as Tool[]) {
    const name = names[tool];
    if (!name || !(await findExecutable(tool, env))) continue;
    const isAllowed = tool === 'brew' || process.getuid?.() === 0;
    if (!isAllowed && !(await maySudo(env))) continue;
    say?.(`Installing ${program} with ${tool}…`);
    const runAs = ([command = '', ...args]: readonly string[]) =>
      isAllowed ? run(command, args, { env, maxBuffer }) : run('sudo', ['-n', command, ...args], { env, maxBuffer });
    const { install, update, after } = PACKAGE_MANAGERS[tool];
    // A stale mirror may fail `update` and still serve `install`.
    if (update) await runAs(update).catch(() => undefined);
    try {
      await runAs([...install, name]);
      // Most machines have no such service, or no systemd.
      if (after) await runAs([...after, name]).catch(() => undefined);
      return tool;
    } catch (error) {
      const said = String(Object(error).stderr || errorMessage(error));
      throw new Error(`${tool} could not install ${program} (${said.trim().split('\n').at(-1)})`, { cause: error });
    }
  }
  return undefined;
}

async function maySudo(env: NodeJS.ProcessEnv): Promise<boolean> {
  if (!(await findExecutable('sudo', env))) return false;
  return run('sudo', ['-n', 'true'], { env }).then(
    () => true,
    () => false,
  );
}

/** The first of that name on PATH. */
export async function findExecutable(name: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  for (const directory of (env['PATH'] ?? '').split(delimiter).filter(Boolean)) {
    const candidate = join(directory, name);
    if (await isExecutable(candidate)) return candidate;
  }
  return undefined;
}

export async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
