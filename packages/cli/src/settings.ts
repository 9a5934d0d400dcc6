/**
 * The settings of commands. Each comes from its flag, else its variable, else the file that `meterline login` writes, else a local
 * stack that runs here, else a default. What a file holds belongs to the address that stands beside it there, and goes to no other.
 */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { NO_ACCOUNT_PATH, QUEUE_PREFIX, serviceAddress } from '@meterline/catalog/plain';
import { redisUrlProblem } from '@meterline/service/redis-address';
import type { Cluster } from '@meterline/warehouse';
import { z } from 'zod';
import { usageError } from './failure.js';
import { readLocalStack, readLogin, type SettingsFile } from './settings-files.js';

/** A variable; one that is set to nothing counts as not set. Those of the services are described there. */
const variable = z
  .string()
  .transform((text) => text || undefined)
  .optional();

/** The variables that the command reads; nothing else in this package looks at the environment. */
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
  METERLINE_PROFILE: variable.describe('The profile that "meterline login --profile" saved and commands use.'),
  METERLINE_API_URL: variable.describe('The address of the API, in place of a login or a local stack.'),
  METERLINE_API_KEY: variable.describe('The key for it.'),
  METERLINE_ACCOUNT: variable.describe('The account that is meant where a command names none.'),
  METERLINE_EMITTER_KEY: variable.describe('The key for the collector, of the role emitter.'),
  METERLINE_DATA_DIR: variable,
  PRICE_BOOK: variable,
  XDG_CONFIG_HOME: variable,
  HOME: variable,
  NO_COLOR: variable,
  TERM: variable,
});
export type Environment = z.output<typeof environment>;

/** Where each is looked for first. */
const SETTINGS = {
  profile: ['--profile', 'METERLINE_PROFILE'],
  apiUrl: ['--api-url', 'METERLINE_API_URL'],
  account: ['--account', 'METERLINE_ACCOUNT'],
  apiKey: ['', 'METERLINE_API_KEY'],
  collectorUrl: ['--url', 'COLLECTOR_URL'],
  emitterKey: ['', 'METERLINE_EMITTER_KEY'],
  redisUrl: ['--redis-url', 'REDIS_URL'],
  queuePrefix: ['--queue-prefix', 'QUEUE_PREFIX'],
  clickhouseUrl: ['--clickhouse-url', 'CLICKHOUSE_URL'],
  clickhouseUser: ['--clickhouse-user', 'CLICKHOUSE_USER'],
  clickhousePassword: ['--clickhouse-password', 'CLICKHOUSE_PASSWORD'],
  clickhouseDatabase: ['--clickhouse-database', 'CLICKHOUSE_DATABASE'],
  book: ['--book', 'PRICE_BOOK'],
} as const satisfies Record<string, readonly [flag: string, variable: keyof Environment]>;
type Flags = { readonly [Name in keyof typeof SETTINGS]?: string | undefined };

/** The settings that a login saves. */
const OF_LOGIN: readonly (keyof Flags)[] = ['apiUrl', 'apiKey', 'account'];

const DEFAULT_URLS = {
  apiUrl: 'http://127.0.0.1:8080',
  collectorUrl: 'http://127.0.0.1:8081',
  redisUrl: 'redis://127.0.0.1:6379',
  clickhouseUrl: 'http://127.0.0.1:8123',
} as const satisfies Flags;
type UrlName = keyof typeof DEFAULT_URLS;

const PROFILE_NAME = /^[\w-]{1,64}$/;

export function loginCommand(profile: Setting | undefined): string {
  return profile === undefined ? 'meterline login' : `meterline login --profile ${profile.value}`;
}

export type ApiFlags = Pick<Flags, 'profile' | 'apiUrl' | 'account'> & { readonly debug?: boolean };
export type RedisFlags = Pick<Flags, 'redisUrl' | 'queuePrefix'>;
export type ClickHouseFlags = Pick<
  Flags,
  'clickhouseUrl' | 'clickhouseUser' | 'clickhousePassword' | 'clickhouseDatabase'
>;

/** The text for --help of commands that ask the API. */
export const API_SETTINGS_HELP = `
The API's address, key and account come from flags, else METERLINE_API_URL, METERLINE_API_KEY and
METERLINE_ACCOUNT, else the file that "meterline login" writes, else a local stack that runs here
(npm start), else ${DEFAULT_URLS.apiUrl}. A key from a file, with its account, goes only to the
address that stands beside it in that file. With --profile, a login of that name goes before the environment.
"meterline whoami" shows what is used, and where it comes from.`;

/** A value and where it was found. */
export interface Setting {
  readonly value: string;
  readonly kind: 'flag' | 'environment' | 'login file' | 'local stack' | 'default';
  /** For messages: `--redis-url`, `REDIS_URL`, a file's path, `the default`. */
  readonly source: string;
}

export interface ApiAccess {
  /** Undefined for the login that has no name. */
  readonly profile: Setting | undefined;
  /** Without a slash at its end. */
  readonly url: Setting;
  /** Undefined when there is none for this address. */
  readonly key: Setting | undefined;
  /** Undefined when nothing names one. */
  readonly account: Setting | undefined;
  /** What the person should know, such as a file that others can read. */
  readonly warning: string | undefined;
}

export interface CollectorSettings {
  /** Without a slash at its end. */
  readonly url: Setting;
  readonly key: Setting;
}

export class Settings {
  readonly #environment: Environment;
  readonly #loginFolder: string;
  readonly #readStack: () => Promise<SettingsFile | undefined>;

  /** @param directory from which a local stack is looked for */
  constructor(variables: Environment, directory: string) {
    const { XDG_CONFIG_HOME, HOME, METERLINE_DATA_DIR } = variables;
    this.#environment = variables;
    this.#loginFolder = join(XDG_CONFIG_HOME ?? join(HOME ?? homedir(), '.config'), 'meterline');
    this.#readStack = () => readLocalStack(METERLINE_DATA_DIR, directory);
  }

  /** The file of a login, named or not. Source: XDG Base Directory Specification. @throws CommandError */
  loginPath(flags: ApiFlags): string {
    const profile = this.#named('profile', flags);
    if (profile === undefined) return join(this.#loginFolder, 'config.json');
    if (PROFILE_NAME.test(profile.value)) return join(this.#loginFolder, 'profiles', `${profile.value}.json`);
    throw usageError(`the profile from ${profile.source} must have 1 to 64 letters, digits, "-" and "_"`);
  }

  /** Where the API is, which key to show it, and whose usage to ask for. @throws CommandError */
  async api(flags: ApiFlags): Promise<ApiAccess> {
    const profile = this.#named('profile', flags);
    if (profile && !existsSync(this.loginPath(flags))) {
      throw usageError(
        `there is no profile ${profile.value} (from ${profile.source}); create it with "${loginCommand(profile)}"`,
      );
    }
    const { url, beside } = await this.#address('apiUrl', flags, canonicalUrl);
    const named = { key: this.#named('apiKey', { profile: flags.profile }), account: this.#named('account', flags) };
    // The account of a file is that of its key.
    const file = named.key ? undefined : await beside();
    const warning = file?.isOpen ? `others can read your key: chmod 600 ${file.path}` : undefined;
    const { key = settingOf(file, 'apiKey'), account = settingOf(file, 'account') } = named;
    if (key) requireKey(key);
    if (account && NO_ACCOUNT_PATH.test(account.value)) {
      throw usageError(
        `the account from ${account.source} must be a name that an address can have, not "${account.value}"`,
      );
    }
    return { profile, url, key, account, warning };
  }

  /** Where the API is. The file of a login is read only where nothing else says: `login` replaces it. @throws CommandError */
  async apiUrl(flags: ApiFlags): Promise<Setting> {
    return (await this.#address('apiUrl', flags, canonicalUrl)).url;
  }

  /** The address of a local stack that runs here and is not asked. */
  async unusedStack({ url }: ApiAccess): Promise<Setting | undefined> {
    const stack = settingOf(await this.#readStack(), 'apiUrl');
    return stack && canonicalUrl(stack) !== url.value ? stack : undefined;
  }

  /** The account of events that name none: not that of a file, so that they mean the same wherever they are sent from. */
  emitAccount(flags: Pick<Flags, 'account'>): string | undefined {
    return this.#named('account', flags)?.value;
  }

  /** Where to send events. @throws CommandError when there is no key for it, or the address is none */
  async collector(collectorUrl: string | undefined): Promise<CollectorSettings> {
    const { url, beside } = await this.#address('collectorUrl', { collectorUrl }, canonicalUrl);
    const key = this.#named('emitterKey', {}) ?? settingOf(await beside(), 'emitterKey');
    if (key) {
      requireKey(key);
      return { url, key };
    }
    throw usageError(
      `there is no key for ${url.value} (from ${url.source}); set METERLINE_EMITTER_KEY to one of the role emitter`,
    );
  }

  /** @throws CommandError when what was found is no address of a Redis */
  async redisUrl(flags: RedisFlags): Promise<Setting> {
    return (await this.#address('redisUrl', flags, checkedBy(redisUrlProblem))).url;
  }

  queuePrefix(flags: RedisFlags): string {
    return this.#named('queuePrefix', flags)?.value ?? QUEUE_PREFIX;
  }

  /** @throws CommandError when what was found is no address of a ClickHouse */
  async clickhouse(flags: ClickHouseFlags): Promise<ClickHouseSettings> {
    // The rules of its addresses come with its driver, which is loaded only when a command needs it.
    const { clickHouseUrlProblem, hostsOf } = await import('@meterline/warehouse');
    const { url, beside } = await this.#address('clickhouseUrl', flags, checkedBy(clickHouseUrlProblem));
    const user = this.#named('clickhouseUser', flags)?.value;
    const password = this.#named('clickhousePassword', flags)?.value;
    const database = this.#named('clickhouseDatabase', flags)?.value;
    const stack = (await beside())?.values;
    // A user of one's own has a password of its own.
    const login = user === undefined && password === undefined ? stack : undefined;
    const hosts = stack?.clickhouseHosts ?? url.value;
    const { CLICKHOUSE_INSERT_QUORUM: quorum, CLICKHOUSE_CLUSTER: name = stack?.clickhouseCluster } = this.#environment;
    if (quorum !== undefined && (name === undefined || !/^[1-9]\d?$/.test(quorum))) {
      throw usageError('CLICKHOUSE_INSERT_QUORUM must be a number of replicas, with CLICKHOUSE_CLUSTER');
    }
    if (name === undefined && hostsOf(hosts).length > 1) {
      throw usageError('several addresses of ClickHouse need the name of their cluster in CLICKHOUSE_CLUSTER');
    }
    return {
      url: { ...url, value: hosts },
      user: user ?? login?.clickhouseUser ?? 'default',
      password: password ?? login?.clickhousePassword ?? '',
      database: database ?? stack?.clickhouseDatabase ?? 'meterline',
      cluster:
        name === undefined ? undefined : { name, insertQuorum: quorum === undefined ? undefined : Number(quorum) },
    };
  }

  /** The file of the price book; undefined for the built-in one. */
  priceBookFile(book: string | undefined): Setting | undefined {
    return this.#named('book', { book });
  }

  #named(name: keyof Flags, flags: Flags): Setting | undefined {
    const [flag, variable] = SETTINGS[name];
    // --profile is a flag: its address, key and account go before those of the environment.
    const isOfProfile = flags.profile !== undefined && OF_LOGIN.includes(name);
    const [flagged, value] = [flags[name], isOfProfile ? undefined : this.#environment[variable]];
    if (flagged !== undefined) return { value: flagged, kind: 'flag', source: flag };
    return value === undefined ? undefined : { value, kind: 'environment', source: variable };
  }

  /**
   * An address in one form, so that two can be compared, and the file that it stands in, if it does. A file is read only for what
   * neither a flag nor a variable says. What a person has logged in to on purpose goes before what happens to run here.
   */
  async #address(name: UrlName, flags: Flags, formOf: (found: Setting) => string) {
    const named = this.#named(name, flags);
    const value = named && formOf(named);
    const beside = async () => {
      for (const read of name === 'apiUrl'
        ? [() => readLogin(this.loginPath(flags)), this.#readStack]
        : [this.#readStack]) {
        const file = await read();
        const found = settingOf(file, name);
        if (found && (value === undefined || formOf(found) === value)) return file;
      }
      return undefined;
    };
    const found: Setting = named ??
      settingOf(await beside(), name) ?? { value: DEFAULT_URLS[name], kind: 'default', source: 'the default' };
    return { url: { ...found, value: formOf(found) }, beside };
  }
}

export interface ClickHouseSettings {
  readonly url: Setting;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** Undefined: one server. */
  readonly cluster: Cluster | undefined;
}

/** Requires a key that a header can have. The key is never quoted: it is a secret. @throws CommandError */
function requireKey({ value, source }: Setting): void {
  if (!/^[\x21-\x7e]+$/.test(value))
    throw usageError(`the key from ${source} is not one line of visible ASCII characters`);
}

function settingOf(file: SettingsFile | undefined, name: keyof SettingsFile['values']): Setting | undefined {
  const value = file?.values[name];
  return file && value !== undefined ? { value, kind: file.kind, source: file.path } : undefined;
}

/** @throws CommandError */
function canonicalUrl({ value, source }: Setting): string {
  return serviceAddress(value, (problem) => usageError(`the address from ${source} ${problem}`));
}

/** @param problemOf what is wrong with an address, as text to append to its name */
function checkedBy(problemOf: (address: string) => string | undefined) {
  return ({ value, source }: Setting): string => {
    const problem = problemOf(value);
    if (problem !== undefined) throw usageError(`the address from ${source} ${problem}`);
    return value;
  };
}

/** `http://127.0.0.1:8080 (local stack: /project/.meterline/local.json)`. */
export function placeText({ value, kind, source }: Setting): string {
  return kind === 'default' ? `${value} (default)` : `${value} (${kind}: ${source})`;
}

/** The characters of a key that are shown: its kind and the beginning of its id, which is no secret. */
const SHOWN_CHARACTERS = 10;

export function keyStart(key: string): string {
  return `${key.slice(0, SHOWN_CHARACTERS)}…`;
}

/** Addresses as they may be shown: without their passwords. */
export function displayUrl(address: string): string {
  return address
    .replace(/(:\/\/[^/?#:]*:)[^/?#]*@/g, '$1***@')
    .replace(/(sentinelPassword=)[^&]*/, '$1***')
    .replace(/\/(?=,|$)/g, '');
}
