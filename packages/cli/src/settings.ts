/** Resolves settings. Each comes from the first source that has it: flag, environment variable, login file, local stack, default. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { NO_ACCOUNT_PATH, QUEUE_PREFIX, serviceAddress } from '@meterline/catalog/plain';
import { redisUrlProblem } from '@meterline/service/redis-address';
import type { Cluster } from '@meterline/warehouse';
import { usageError } from './failure.js';
import {
  DEFAULT_URLS,
  type Environment,
  type Flags,
  fileSource,
  findServer,
  firstOf,
  namedSettings,
  type Setting,
  type SettingName,
  type Source,
} from './setting-sources.js';
import { isReadableByOthers, readLocalStack, readLogin } from './settings-files.js';

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

export const API_SETTINGS_HELP = `
The address, key and account come from flags, METERLINE_API_URL, METERLINE_API_KEY and METERLINE_ACCOUNT,
the login, or the local stack started by "npm start", in this order (default address: ${DEFAULT_URLS.apiUrl}).
A saved key is sent only to the address it was saved with. --profile takes precedence over the environment.
Run "meterline whoami" to see the settings in use and their sources.`;

export interface ApiAccess {
  /** The profile of the login, or undefined for the unnamed login. */
  readonly profile: Setting | undefined;
  readonly url: Setting;
  /** The key for this address, or undefined if no key is known. */
  readonly key: Setting | undefined;
  readonly account: Setting | undefined;
  readonly warning: string | undefined;
}

export interface CollectorSettings {
  readonly url: Setting;
  readonly key: Setting;
}

export interface ClickHouseSettings {
  readonly url: Setting;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly cluster: Cluster | undefined;
}

export class Settings {
  readonly #variables: Environment;
  readonly #loginFolder: string;
  readonly #stack: () => Source;

  /** @param directory the folder in which the search for a local stack starts */
  constructor(variables: Environment, directory: string) {
    const { XDG_CONFIG_HOME, HOME, METERLINE_DATA_DIR } = variables;
    this.#variables = variables;
    this.#loginFolder = join(XDG_CONFIG_HOME ?? join(HOME ?? homedir(), '.config'), 'meterline');
    this.#stack = () => fileSource(() => readLocalStack(METERLINE_DATA_DIR, directory));
  }

  /** Returns the path of the login file. Source: XDG Base Directory Specification. @throws CommandError */
  loginPath(flags: ApiFlags): string {
    const profile = this.#named(flags)('profile');
    if (profile === undefined) return join(this.#loginFolder, 'config.json');
    if (PROFILE_NAME.test(profile.value)) return join(this.#loginFolder, 'profiles', `${profile.value}.json`);
    throw usageError(`the profile from ${profile.source} must have 1 to 64 letters, digits, "-" and "_"`);
  }

  async api(flags: ApiFlags): Promise<ApiAccess> {
    const profile = this.#named(flags)('profile');
    if (profile && !existsSync(this.loginPath(flags))) {
      throw usageError(
        `there is no profile ${profile.value} (from ${profile.source}); create it with "${loginCommand(profile)}"`,
      );
    }
    const { url, sources } = await findServer('apiUrl', this.#apiSources(flags), canonicalUrl);
    const { setting: key, source: keySource } = await firstOf(sources, 'apiKey');
    // An account in a file belongs to the key in the same file.
    const { setting: account } = await firstOf(
      sources.filter((source) => !source.isFile || source === keySource),
      'account',
    );
    if (key) requireKey(key);
    if (account && NO_ACCOUNT_PATH.test(account.value)) {
      throw usageError(`the account from ${account.source} cannot be "${account.value}"; use an account ID`);
    }
    const isExposed = key?.kind === 'login file' && (await isReadableByOthers(key.source));
    const warning = isExposed ? `others can read your key: chmod 600 ${key.source}` : undefined;
    return { profile, url, key, account, warning };
  }

  /** Returns the address of the API. If a flag or variable sets it, does not read the login file, so that `login` can replace a broken file. */
  async apiUrl(flags: ApiFlags): Promise<Setting> {
    return (await findServer('apiUrl', this.#apiSources(flags), canonicalUrl)).url;
  }

  async unusedStack({ url }: ApiAccess): Promise<Setting | undefined> {
    const stack = await this.#stack().find('apiUrl');
    return stack && canonicalUrl(stack) !== url.value ? stack : undefined;
  }

  /** Returns the account of events that name no account. Ignores logins and the local stack: a file must mean the same on every machine. */
  emitAccount(flags: Pick<Flags, 'account'>): string | undefined {
    return this.#named(flags)('account')?.value;
  }

  /** Returns the address and key of the collector. @throws CommandError if no key is known or the address is invalid */
  async collector(collectorUrl: string | undefined): Promise<CollectorSettings> {
    const { url, sources } = await findServer('collectorUrl', this.#serverSources({ collectorUrl }), canonicalUrl);
    const { setting: key } = await firstOf(sources, 'emitterKey');
    if (key) {
      requireKey(key);
      return { url, key };
    }
    throw usageError(
      `there is no key for ${url.value} (from ${url.source}); set METERLINE_EMITTER_KEY to a key with the role emitter`,
    );
  }

  async redisUrl(flags: RedisFlags): Promise<Setting> {
    return (await findServer('redisUrl', this.#serverSources(flags), checkedBy(redisUrlProblem))).url;
  }

  queuePrefix(flags: RedisFlags): string {
    return this.#named(flags)('queuePrefix')?.value ?? QUEUE_PREFIX;
  }

  async clickhouse(flags: ClickHouseFlags): Promise<ClickHouseSettings> {
    // Load the module here, because it loads the ClickHouse driver, which most commands do not need.
    const { clickHouseUrlProblem, hostsOf } = await import('@meterline/warehouse');
    const server = await findServer('clickhouseUrl', this.#serverSources(flags), checkedBy(clickHouseUrlProblem));
    const find = async (name: SettingName, sources = server.sources) => (await firstOf(sources, name)).setting?.value;
    // If the user gave a user name or a password, do not combine it with a password or user name from a file.
    const named = this.#named(flags);
    const isLoginNamed = named('clickhouseUser') !== undefined || named('clickhousePassword') !== undefined;
    const loginSources = server.sources.filter(({ isFile }) => !isFile || !isLoginNamed);
    const hosts = (await find('clickhouseHosts')) ?? server.url.value;
    const cluster = await find('clickhouseCluster');
    const quorum = await find('clickhouseInsertQuorum');
    if (quorum !== undefined && (cluster === undefined || !/^[1-9]\d?$/.test(quorum))) {
      throw usageError('CLICKHOUSE_INSERT_QUORUM must be a number of replicas and needs CLICKHOUSE_CLUSTER');
    }
    if (cluster === undefined && hostsOf(hosts).length > 1) {
      throw usageError('several ClickHouse addresses need the name of their cluster; set CLICKHOUSE_CLUSTER');
    }
    return {
      url: { ...server.url, value: hosts },
      user: (await find('clickhouseUser', loginSources)) ?? 'default',
      password: (await find('clickhousePassword', loginSources)) ?? '',
      database: (await find('clickhouseDatabase')) ?? 'meterline',
      cluster:
        cluster === undefined
          ? undefined
          : { name: cluster, insertQuorum: quorum === undefined ? undefined : Number(quorum) },
    };
  }

  /** Returns the path of the catalog, or undefined if the platform has added no dimensions. */
  catalogFile(): Setting | undefined {
    return this.#named({})('catalog');
  }

  /** Returns the path of the price book, or undefined for the built-in price book. */
  priceBookFile(book: string | undefined): Setting | undefined {
    return this.#named({ book })('book');
  }

  #named(flags: Flags) {
    return namedSettings(flags, this.#variables);
  }

  /** Without --profile, variables come before the login file. With --profile, variables are not used, so that the profile applies. */
  #apiSources(flags: ApiFlags): Source[] {
    const named = flags.profile === undefined ? this.#named(flags) : namedSettings(flags);
    return [{ isFile: false, find: named }, fileSource(() => readLogin(this.loginPath(flags))), this.#stack()];
  }

  #serverSources(flags: Flags): Source[] {
    return [{ isFile: false, find: this.#named(flags) }, this.#stack()];
  }
}

/** Requires a key that fits in a header. The message never quotes the key, which is secret. @throws CommandError */
function requireKey({ value, source }: Setting): void {
  if (!/^[\x21-\x7e]+$/.test(value))
    throw usageError(`the key from ${source} is not one line of visible ASCII characters`);
}

function canonicalUrl({ value, source }: Setting): string {
  return serviceAddress(value, (problem) => usageError(`the address from ${source} ${problem}`));
}

/** @param problemOf returns the problem of an address. In the message, the problem follows the name of the address. */
function checkedBy(problemOf: (address: string) => string | undefined) {
  return ({ value, source }: Setting): string => {
    const problem = problemOf(value);
    if (problem !== undefined) throw usageError(`the address from ${source} ${problem}`);
    return value;
  };
}

/** Returns a setting with its source: `http://127.0.0.1:8080 (local stack: /project/.meterline/local.json)`. */
export function settingText({ value, kind, source }: Setting): string {
  return kind === 'default' ? `${value} (default)` : `${value} (${kind}: ${source})`;
}

/** Number of characters of a key to show. They contain the kind of the key and the start of its ID, which is not secret. */
const SHOWN_CHARACTERS = 10;

export function keyStart(key: string): string {
  return `${key.slice(0, SHOWN_CHARACTERS)}…`;
}

export function displayUrl(address: string): string {
  return address
    .replace(/(:\/\/[^/?#:]*:)[^/?#]*@/g, '$1***@')
    .replace(/(sentinelPassword=)[^&]*/, '$1***')
    .replace(/\/(?=,|$)/g, '');
}
