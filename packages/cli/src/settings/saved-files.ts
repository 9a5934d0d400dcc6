/** The two files in which settings are found: that of `meterline login`, and that of a running local stack. */
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseJson } from '@meterline/catalog/events';
import { systemErrorCode, usageError } from '../command.js';
import { type Fields, faultsOf, hasFields, optional, someText, text, url } from './fields.js';
import type { Environment } from './settings.js';

const FOR_OTHERS = 0o077;

/** What `meterline login` keeps. Only the owner may read it. */
export interface Login {
  readonly apiUrl: string;
  readonly apiKey: string;
  readonly account?: string | undefined;
}

const LOGIN_FIELDS: Fields<Login> = { apiUrl: url, apiKey: someText, account: optional(someText) };

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
  let content: string;
  let mode: number;
  try {
    content = await readFile(path, 'utf8');
    ({ mode } = await stat(path));
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw usageError(`cannot read ${path} (${code}); log in again, or use METERLINE_API_KEY`);
  }
  const login = parseJson(content) ?? null;
  if (!hasFields(login, LOGIN_FIELDS)) throw usageError(`${path} is not what login writes; log in again, or remove it`);
  return { path, login, isOpen: process.platform !== 'win32' && (mode & FOR_OTHERS) !== 0 };
}

/**
 * Replaces the file at once, so that no reader finds half of it. At no moment can others read it.
 * @throws the system's error
 */
export async function writeConfigFile(path: string, login: Login): Promise<void> {
  // Loaded only here: every command loads this module.
  const { writePrivateText } = await import('@meterline/service/private-file');
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writePrivateText(path, `${JSON.stringify(login, null, 2)}\n`);
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

const FILE_NAME = 'local.json';
const DEFAULT_DATA_DIR = '.meterline';
/** What the root of a project holds; the search for a data directory goes no higher. */
const ROOT_MARKS = ['package-lock.json', '.git'];

/** What a running local stack (`npm start`) says of its servers. Source: DESIGN section 8. */
export interface LocalStackFile {
  readonly path: string;
  readonly addresses: LocalStackAddresses;
}

interface LocalStackAddresses {
  readonly apiUrl: string;
  readonly redisUrl: string;
  /** Not in what an earlier release writes. */
  readonly collectorUrl?: string | undefined;
  readonly emitterKey?: string | undefined;
  readonly clickhouseUrl: string;
  /** Of several shards: the addresses of all, separated by commas, and the name of their cluster. */
  readonly clickhouseHosts?: string | undefined;
  readonly clickhouseCluster?: string | undefined;
  readonly clickhouseUser: string;
  readonly clickhousePassword: string;
  readonly clickhouseDatabase: string;
  readonly account: string;
  readonly adminKey: string;
  readonly memberKey: string;
}

const LOCAL_STACK_FIELDS: Fields<LocalStackAddresses> = {
  apiUrl: url,
  redisUrl: url,
  collectorUrl: optional(url),
  emitterKey: optional(text),
  clickhouseUrl: url,
  clickhouseHosts: optional(text),
  clickhouseCluster: optional(text),
  clickhouseUser: someText,
  clickhousePassword: text,
  clickhouseDatabase: someText,
  account: text,
  adminKey: text,
  memberKey: text,
};

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
  const addresses = parseJson(content) ?? null;
  if (hasFields(addresses, LOCAL_STACK_FIELDS)) return { path, addresses };
  const faults = faultsOf(addresses, LOCAL_STACK_FIELDS);
  throw usageError(`${path} is not what npm start writes (${faults.join('; ')}); restart the local stack or remove it`);
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
