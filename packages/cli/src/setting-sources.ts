/**
 * Looks up settings in an ordered list of sources: first flags and environment variables, then files. Also finds the sources that belong to
 * a server: the settings in a file, such as a key, are used only for the server whose address the file contains.
 */
import { z } from 'zod';

/** An environment variable. An empty variable counts as unset. The services describe the variables that have no description here. */
const variable = z
  .string()
  .transform((text) => text || undefined)
  .optional();

export const environment = z.object({
  REDIS_URL: variable,
  CLICKHOUSE_URL: variable,
  CLICKHOUSE_USER: variable,
  CLICKHOUSE_PASSWORD: variable,
  CLICKHOUSE_DATABASE: variable,
  CLICKHOUSE_CLUSTER: variable,
  CLICKHOUSE_INSERT_QUORUM: variable,
  QUEUE_PREFIX: variable,
  COLLECTOR_URL: variable,
  METERLINE_PROFILE: variable.describe('The login profile to use, saved by "meterline login --profile".'),
  METERLINE_API_URL: variable.describe('The address of the API, instead of that of a login or local stack.'),
  METERLINE_API_KEY: variable.describe('The API key for METERLINE_API_URL.'),
  METERLINE_ACCOUNT: variable.describe('The default account of commands.'),
  METERLINE_EMITTER_KEY: variable.describe('The API key for the collector, with the role emitter.'),
  METERLINE_DATA_DIR: variable,
  PRICE_BOOK: variable,
  CATALOG: variable,
  XDG_CONFIG_HOME: variable,
  HOME: variable,
});
export type Environment = z.output<typeof environment>;

const SETTINGS = {
  profile: ['--profile', 'METERLINE_PROFILE'],
  apiUrl: ['--api-url', 'METERLINE_API_URL'],
  account: ['--account', 'METERLINE_ACCOUNT'],
  apiKey: [undefined, 'METERLINE_API_KEY'],
  collectorUrl: ['--url', 'COLLECTOR_URL'],
  emitterKey: [undefined, 'METERLINE_EMITTER_KEY'],
  redisUrl: ['--redis-url', 'REDIS_URL'],
  queuePrefix: ['--queue-prefix', 'QUEUE_PREFIX'],
  clickhouseUrl: ['--clickhouse-url', 'CLICKHOUSE_URL'],
  clickhouseUser: ['--clickhouse-user', 'CLICKHOUSE_USER'],
  clickhousePassword: ['--clickhouse-password', 'CLICKHOUSE_PASSWORD'],
  clickhouseDatabase: ['--clickhouse-database', 'CLICKHOUSE_DATABASE'],
  clickhouseHosts: [undefined, undefined],
  clickhouseCluster: [undefined, 'CLICKHOUSE_CLUSTER'],
  clickhouseInsertQuorum: [undefined, 'CLICKHOUSE_INSERT_QUORUM'],
  book: ['--book', 'PRICE_BOOK'],
  catalog: [undefined, 'CATALOG'],
} as const satisfies Record<string, readonly [flag: string | undefined, variable: keyof Environment | undefined]>;
export type SettingName = keyof typeof SETTINGS;
export type Flags = { readonly [Name in SettingName]?: string | undefined };

export const DEFAULT_URLS = {
  apiUrl: 'http://127.0.0.1:8080',
  collectorUrl: 'http://127.0.0.1:8081',
  redisUrl: 'redis://127.0.0.1:6379',
  clickhouseUrl: 'http://127.0.0.1:8123',
} as const satisfies Flags;
export type UrlName = keyof typeof DEFAULT_URLS;

export interface Setting {
  readonly value: string;
  readonly kind: 'flag' | 'environment' | 'login file' | 'local stack' | 'default';
  /** The source as it appears in messages: `--redis-url`, `REDIS_URL`, the path of a file, or `the default`. */
  readonly source: string;
}

export type Lookup = (name: SettingName) => Setting | undefined;

/** A source of settings. If several sources have a setting, the first source applies. */
export interface Source {
  readonly isFile: boolean;
  readonly find: (name: SettingName) => Setting | undefined | Promise<Setting | undefined>;
}

export function namedSettings(flags: Flags, variables?: Environment): Lookup {
  return (name) => {
    const [flag, variable] = SETTINGS[name];
    return (
      settingOf(flags[name], 'flag', flag) ?? settingOf(variable && variables?.[variable], 'environment', variable)
    );
  };
}

export interface SettingsFile {
  readonly kind: 'login file' | 'local stack';
  readonly path: string;
  readonly values: Flags;
}

/** Reads the file on first use, so that an invalid file fails only the commands that need the file. */
export function fileSource(read: () => Promise<SettingsFile | undefined>): Source {
  let file: ReturnType<typeof read> | undefined;
  const find = async (name: SettingName) => {
    file ??= read();
    const { values, kind, path } = (await file) ?? {};
    return kind && settingOf(values?.[name], kind, path);
  };
  return { isFile: true, find };
}

function settingOf(value: string | undefined, kind: Setting['kind'], source = ''): Setting | undefined {
  return value === undefined ? undefined : { value, kind, source };
}

export async function firstOf(
  sources: readonly Source[],
  name: SettingName,
): Promise<{ readonly setting?: Setting; readonly source?: Source }> {
  for (const source of sources) {
    const setting = await source.find(name);
    if (setting) return { setting, source };
  }
  return {};
}

/**
 * Returns the address of a server, and the sources of its other settings. A file is such a source only if it contains this address.
 * @param canonicalOf returns the canonical form of an address, so that addresses can be compared
 */
export async function findServer(
  name: UrlName,
  sources: readonly Source[],
  canonicalOf: (url: Setting) => string,
): Promise<{ readonly url: Setting; readonly sources: readonly Source[] }> {
  const { setting = { value: DEFAULT_URLS[name], kind: 'default', source: 'the default' } } = await firstOf(
    sources,
    name,
  );
  const value = canonicalOf(setting);
  const ofServer = (source: Source): Source => ({
    ...source,
    find: async (other) => {
      const url = await source.find(name);
      return url && canonicalOf(url) === value ? source.find(other) : undefined;
    },
  });
  return { url: { ...setting, value }, sources: sources.map((source) => (source.isFile ? ofServer(source) : source)) };
}
