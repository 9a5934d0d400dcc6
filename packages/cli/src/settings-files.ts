/**
 * The files that settings may come from: what `meterline login` keeps, and what a running local stack (`npm start`) says of itself.
 */
import { existsSync } from 'node:fs';
import { mkdir, readFile, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { parseJson } from '@meterline/catalog/plain';
import { z } from 'zod';
import { CommandError, systemErrorCode, systemErrorText, usageError } from './failure.js';

/** What `meterline login` keeps. */
const loginFile = z.object({ apiUrl: z.url(), apiKey: z.string().min(1), account: z.string().min(1).optional() });

/** What a running local stack (`npm start`) says of its servers. Source: DESIGN section 8. */
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
    /** The addresses of all of several shards, separated by commas, and the name of their cluster. */
    clickhouseHosts: z.string().optional(),
    clickhouseCluster: z.string().optional(),
  })
  .transform(({ adminKey, ...others }) => ({ apiKey: adminKey, ...others }));

/** A file with settings. */
export interface SettingsFile {
  readonly kind: 'login file' | 'local stack';
  readonly path: string;
  readonly values: { readonly [Name in keyof z.output<typeof stackFile>]?: string | undefined };
  /** Whether others than its owner may read it, which login never allows. */
  readonly isOpen: boolean;
}

const FOR_OTHERS = 0o077;

/** @returns undefined when nobody has logged in. @throws CommandError when the file cannot be used */
export async function readLogin(path: string): Promise<SettingsFile | undefined> {
  const text = await readIfThere(path, 'make it readable, or remove it with "meterline logout"');
  if (text === undefined) return undefined;
  const kept = loginFile.safeParse(parseJson(text));
  if (!kept.success)
    throw usageError(
      `${path} is not what login writes; log in again with --api-url, or remove it with "meterline logout"`,
    );
  const isOpen = process.platform !== 'win32' && ((await stat(path)).mode & FOR_OTHERS) !== 0;
  return { kind: 'login file', path, values: kept.data, isOpen };
}

/**
 * Replaces the file of a login at once, so that no reader finds half of it. At no moment can others read it.
 * @throws CommandError when it cannot be written
 */
export async function writeLogin(path: string, kept: z.output<typeof loginFile>): Promise<void> {
  try {
    // Its libraries take longer to load than any other part of a command, and only login writes.
    const { writePrivateText } = await import('@meterline/service/files');
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writePrivateText(path, `${JSON.stringify(kept, null, 2)}\n`);
  } catch (error) {
    throw new CommandError(`cannot write ${path}: ${systemErrorText(error) ?? error}`, undefined, { cause: error });
  }
}

/** What the root of a project holds; the search for a data directory goes no higher. */
const ROOT_MARKS = ['package-lock.json', '.git'];

/**
 * @param dataDir METERLINE_DATA_DIR; when undefined, `.meterline` in the directory or one above it, as far up as the project's root
 * @returns undefined when no local stack is running there
 * @throws CommandError when the file cannot be used
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
  const text = path && (await readIfThere(path, 'name the servers with flags or in the environment'));
  if (path === undefined || text === undefined) return undefined;
  const found = stackFile.safeParse(parseJson(text));
  if (found.success) return { kind: 'local stack', path, values: found.data, isOpen: false };
  const problems = found.error.issues.map(({ path: [field = 'content'], message }) => `${String(field)}: ${message}`);
  throw usageError(
    `${path} is not what npm start writes (${problems.join('; ')}); restart the local stack or remove it`,
  );
}

/** The directory itself and those above it, up to the first that is a project's root; only itself outside of one. */
function directoriesUpToRoot(start: string): string[] {
  const directories = [start];
  for (let at = start; at !== dirname(at); at = dirname(at)) directories.push(dirname(at));
  const root = directories.findIndex((each) => ROOT_MARKS.some((mark) => existsSync(join(each, mark))));
  return directories.slice(0, Math.max(root, 0) + 1);
}

/** @returns undefined when it is not there. @throws CommandError when it cannot be read */
async function readIfThere(path: string, advice: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const code = systemErrorCode(error) ?? '';
    if (['ENOENT', 'ENOTDIR'].includes(code)) return undefined;
    throw usageError(`cannot read ${path} (${code}); ${advice}`);
  }
}
