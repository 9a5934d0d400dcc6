/** The file in which `meterline login` keeps an API key. Only its owner may read it. */
import { randomBytes } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { systemErrorCode, usageError } from '../command-error.js';
import type { Environment } from './environment.js';

const OWNER_ONLY = 0o600;
const FOR_OTHERS = 0o077;

const loginSchema = z.object({
  apiUrl: z.url(),
  apiKey: z.string().min(1),
  account: z.string().min(1).optional(),
});
/** What login keeps. */
export type Login = z.output<typeof loginSchema>;

export interface ConfigFile {
  readonly path: string;
  readonly login: Login;
  /** Whether others than its owner may read it, which login never allows. */
  readonly isOpen: boolean;
}

/** METERLINE_CONFIG, else `meterline/config.json` where the user's configuration is (XDG Base Directory Specification). */
export function configFilePath({ METERLINE_CONFIG, XDG_CONFIG_HOME, HOME }: Environment): string {
  if (METERLINE_CONFIG !== undefined) return resolve(METERLINE_CONFIG);
  return join(XDG_CONFIG_HOME ?? join(HOME ?? homedir(), '.config'), 'meterline', 'config.json');
}

/** @returns undefined when nobody has logged in. @throws CommandError when the file cannot be used */
export async function readConfigFile(path: string): Promise<ConfigFile | undefined> {
  let text: string;
  let mode: number;
  try {
    text = await readFile(path, 'utf8');
    ({ mode } = await stat(path));
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw usageError(`cannot read ${path} (${code}); log in again, or use METERLINE_API_KEY`);
  }
  const login = loginSchema.safeParse(parseJson(text));
  if (!login.success) throw usageError(`${path} is not what login writes; log in again, or remove it`);
  return { path, login: login.data, isOpen: process.platform !== 'win32' && (mode & FOR_OTHERS) !== 0 };
}

/**
 * Replaces the file at once, so that no reader finds half of it; it is never, not even for a moment, open to others.
 * @throws the system's error
 */
export async function writeConfigFile(path: string, login: Login): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    const file = await open(draft, 'wx', OWNER_ONLY);
    try {
      await file.writeFile(`${JSON.stringify(login, null, 2)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** @returns whether there was one */
export async function removeConfigFile(path: string): Promise<boolean> {
  try {
    await rm(path);
    return true;
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return false;
    throw error;
  }
}

/** Null, which the schema refuses, for a text that is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
