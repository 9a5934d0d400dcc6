/** Reads and writes login files, and reads the file of a running local stack (`npm start`). */
import { existsSync } from 'node:fs';
import { mkdir, readFile, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { parseJson } from '@meterline/catalog/plain';
import { z } from 'zod';
import { CommandError, systemErrorCode, systemErrorText, usageError } from './failure.js';
import type { SettingsFile } from './setting-sources.js';

const loginFile = z.object({ apiUrl: z.url(), apiKey: z.string().min(1), account: z.string().min(1).optional() });

/** The file that a local stack writes while it runs. */
const stackFile = z
  .object({
    apiUrl: z.url(),
    adminKey: z.string(),
    account: z.string(),
    redisUrl: z.url(),
    collectorUrl: z.url().optional(),
    emitterKey: z.string().optional(),
    clickhouseUrl: z.url(),
    clickhouseUser: z.string().min(1),
    clickhousePassword: z.string(),
    clickhouseDatabase: z.string().min(1),
    /** The addresses of all shards, separated by commas, and the name of their cluster. Set only if there are several shards. */
    clickhouseHosts: z.string().optional(),
    clickhouseCluster: z.string().optional(),
  })
  .transform(({ adminKey, ...values }) => ({ apiKey: adminKey, ...values }));

/** Reads a login file. Returns undefined if the file does not exist. @throws CommandError if it is unreadable or invalid */
export async function readLogin(path: string): Promise<SettingsFile | undefined> {
  const text = await readIfThere(path, 'make it readable, or run "meterline logout"');
  if (text === undefined) return undefined;
  const login = loginFile.safeParse(parseJson(text));
  if (login.success) return { kind: 'login file', path, values: login.data };
  throw usageError(`${path} is not a valid login file; log in again with --api-url, or run "meterline logout"`);
}

const READABLE_BY_OTHERS = 0o077;

/** Returns whether users other than the owner can read a file. Always false on Windows, which has no such permissions. */
export async function isReadableByOthers(path: string): Promise<boolean> {
  return process.platform !== 'win32' && ((await stat(path)).mode & READABLE_BY_OTHERS) !== 0;
}

/** Replaces a login file atomically. Other users can never read it, not even while it is written. @throws CommandError */
export async function writeLogin(path: string, login: z.output<typeof loginFile>): Promise<void> {
  try {
    // Load the module here, because it loads slowly and only the login command writes.
    const { writePrivateText } = await import('@meterline/service/files');
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writePrivateText(path, `${JSON.stringify(login, null, 2)}\n`);
  } catch (error) {
    throw new CommandError(`cannot write ${path}: ${systemErrorText(error) ?? error}`, undefined, { cause: error });
  }
}

/** Files in the root folder of a project. The search for a data folder ends there. */
const ROOT_MARKS = ['package-lock.json', '.git'];

/**
 * Reads the file of a running local stack. Returns undefined if no local stack is running.
 * @param dataDir METERLINE_DATA_DIR. If undefined, `.meterline` is searched for in `directory` and its parents, up to the project's root.
 * @throws CommandError if the file is unreadable or invalid
 */
export async function readLocalStack(
  dataDir: string | undefined,
  directory: string,
): Promise<SettingsFile | undefined> {
  const directories =
    dataDir === undefined
      ? directoriesUpToRoot(directory).map((each) => join(each, '.meterline'))
      : [resolve(directory, dataDir)];
  const path = directories.map((each) => join(each, 'local.json')).find((each) => existsSync(each));
  const text = path && (await readIfThere(path, 'set the server addresses with flags or environment variables'));
  if (path === undefined || text === undefined) return undefined;
  const found = stackFile.safeParse(parseJson(text));
  if (found.success) return { kind: 'local stack', path, values: found.data };
  const problems = found.error.issues.map(({ path: [field = 'content'], message }) => `${String(field)}: ${message}`);
  throw usageError(
    `${path} is not a valid local stack file (${problems.join('; ')}); restart the local stack, or remove the file`,
  );
}

/** Returns the directory and its parents up to the project's root. Outside of a project, returns only the directory. */
function directoriesUpToRoot(start: string): string[] {
  const directories = [start];
  for (let at = start; at !== dirname(at); at = dirname(at)) directories.push(dirname(at));
  const root = directories.findIndex((each) => ROOT_MARKS.some((mark) => existsSync(join(each, mark))));
  return directories.slice(0, Math.max(root, 0) + 1);
}

async function readIfThere(path: string, advice: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const code = systemErrorCode(error) ?? '';
    if (['ENOENT', 'ENOTDIR'].includes(code)) return undefined;
    throw usageError(`cannot read ${path} (${code}); ${advice}`);
  }
}
