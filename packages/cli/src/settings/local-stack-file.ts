/** The file in which a running local stack (`npm start`) says where its servers are. Source: DESIGN section 8. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { systemErrorCode, usageError } from '../command-error.js';

const FILE_NAME = 'local.json';
const DEFAULT_DATA_DIR = '.meterline';
/** What the root of a project holds; the search for a data directory goes no higher. */
const ROOT_MARKS = ['package-lock.json', '.git'];

const localStackSchema = z.object({
  apiUrl: z.url(),
  redisUrl: z.url(),
  clickhouseUrl: z.url(),
  clickhouseDatabase: z.string().min(1),
  account: z.string(),
  adminKey: z.string(),
  memberKey: z.string(),
});

export interface LocalStackFile {
  readonly path: string;
  readonly addresses: z.output<typeof localStackSchema>;
}

/**
 * @param dataDir METERLINE_DATA_DIR; when undefined, `.meterline` in the current directory or one above it, as far up
 * as the root of the project
 * @returns undefined when no local stack is running there
 * @throws CommandError when the file cannot be used
 */
export async function findLocalStack(dataDir: string | undefined, cwd: string): Promise<LocalStackFile | undefined> {
  const directories =
    dataDir === undefined
      ? directoriesUpToRoot(cwd).map((directory) => join(directory, DEFAULT_DATA_DIR))
      : [resolve(cwd, dataDir)];
  for (const directory of directories) {
    const file = await readLocalStack(join(directory, FILE_NAME));
    if (file) return file;
  }
  return undefined;
}

async function readLocalStack(path: string): Promise<LocalStackFile | undefined> {
  let content: string;
  try {
    content = await readFile(path, 'utf8');
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw usageError(
      `cannot read ${path} (${systemErrorCode(error)}); name the servers with flags or in the environment`,
    );
  }
  const addresses = localStackSchema.safeParse(parseJson(content));
  if (addresses.success) return { path, addresses: addresses.data };
  const faults = addresses.error.issues.map(
    ({ path: field, message }) => `${field.join('.') || 'content'}: ${message}`,
  );
  throw usageError(`${path} is not what npm start writes (${faults.join('; ')}); restart the local stack or remove it`);
}

/** Null, which the schema refuses, for a text that is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The directory itself and those above it, up to the first that is a project's root; only itself outside of one. */
function directoriesUpToRoot(start: string): string[] {
  const directories: string[] = [];
  for (let directory = resolve(start); ; directory = dirname(directory)) {
    directories.push(directory);
    if (ROOT_MARKS.some((mark) => existsSync(join(directory, mark)))) return directories;
    if (directory === dirname(directory)) return [resolve(start)];
  }
}
