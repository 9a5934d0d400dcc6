/** What the environment says, and where an operator's servers are. */
import { isRedisUrl, MAX_QUEUE_SHARDS, QUEUE_PREFIX, redisUrlFault } from '@meterline/catalog/events';
import type { Cluster } from '@meterline/warehouse';
import { usageError } from '../command.js';
import type { LocalStackFile } from './saved-files.js';

const VARIABLES = [
  'REDIS_URL',
  'CLICKHOUSE_URL',
  'CLICKHOUSE_USER',
  'CLICKHOUSE_PASSWORD',
  'CLICKHOUSE_DATABASE',
  'CLICKHOUSE_CLUSTER',
  'CLICKHOUSE_INSERT_QUORUM',
  'QUEUE_PREFIX',
  'QUEUE_SHARDS',
  'METERLINE_API_URL',
  'METERLINE_API_KEY',
  'METERLINE_ACCOUNT',
  'METERLINE_COLLECTOR_URL',
  'METERLINE_EMITTER_KEY',
  'METERLINE_CONFIG',
  'METERLINE_DATA_DIR',
  'PRICE_BOOK',
  'RETENTION_MONTHS',
  'XDG_CONFIG_HOME',
  'HOME',
  'NO_COLOR',
  'TERM',
] as const;
export type Environment = { readonly [Name in (typeof VARIABLES)[number]]?: string | undefined };

/**
 * The variables that the command reads; nothing else in this package looks at the environment. One that is set to nothing counts as not
 * set.
 */
export function readEnvironment(variables: NodeJS.ProcessEnv = process.env): Environment {
  return Object.fromEntries(VARIABLES.map((name) => [name, variables[name] || undefined]));
}

export type SettingKind = 'flag' | 'environment' | 'login file' | 'local stack' | 'default';

/** A value and where it was found. */
export interface Setting {
  readonly value: string;
  readonly kind: SettingKind;
  /** For messages: `--redis-url`, `REDIS_URL`, a file's path, `the default`. */
  readonly source: string;
}

export interface RedisFlags {
  readonly redisUrl?: string;
  readonly queuePrefix?: string;
}

export interface CollectorFlags extends RedisFlags {
  readonly url?: string;
}

export interface CollectorSettings {
  /** Without a slash at its end. */
  readonly url: Setting;
  readonly key: Setting;
}

export interface ClickHouseFlags {
  readonly clickhouseUrl?: string;
  readonly clickhouseUser?: string;
  readonly clickhousePassword?: string;
  readonly clickhouseDatabase?: string;
}

export interface ClickHouseSettings {
  readonly url: Setting;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** Undefined: one server. */
  readonly cluster: Cluster | undefined;
}

/**
 * Where an operator's servers are: each setting from a flag, else the environment, else a running local stack, else the
 * default. The rules of an address come with the server's driver, which is loaded only when a command needs it.
 */
export class Settings {
  readonly #environment: Environment;
  readonly #findLocalStack: () => Promise<LocalStackFile | undefined>;

  /** @param findLocalStack asked only for what neither a flag nor the environment says */
  constructor(environment: Environment, findLocalStack: () => Promise<LocalStackFile | undefined>) {
    this.#environment = environment;
    this.#findLocalStack = findLocalStack;
  }

  /** @throws CommandError when what was found is no address of a Redis */
  async redisUrl({ redisUrl }: RedisFlags): Promise<Setting> {
    const url = await this.#choose(
      ofFlag(redisUrl, '--redis-url') ?? ofVariable(this.#environment, 'REDIS_URL'),
      'redisUrl',
      'redis://127.0.0.1:6379',
    );
    return requireUrl(url, redisUrlFault);
  }

  /**
   * Where to send events over HTTP; undefined: to the queue.
   * @throws CommandError when there is no key for it, or the address is none
   */
  async collector({ url: flag, redisUrl }: CollectorFlags): Promise<CollectorSettings | undefined> {
    const ofEnvironment = redisUrl === undefined ? ofVariable(this.#environment, 'METERLINE_COLLECTOR_URL') : undefined;
    const named = ofFlag(flag, '--url') ?? ofEnvironment;
    if (!named) return undefined;
    if (isRedisUrl(named.value))
      throw usageError(`the address from ${named.source} must be a collector's; a Redis is named with --redis-url`);
    const url = { ...named, value: canonicalUrl(named) };
    const key = ofVariable(this.#environment, 'METERLINE_EMITTER_KEY') ?? (await this.#stackKey(url.value));
    if (key) return { url, key };
    throw usageError(
      `there is no key for ${url.value} (from ${url.source}); set METERLINE_EMITTER_KEY to one of the role emitter`,
    );
  }

  /** The local stack's key is for its own collector, and goes to no other. */
  async #stackKey(url: string): Promise<Setting | undefined> {
    const stack = await this.#findLocalStack();
    const { collectorUrl, emitterKey } = stack?.addresses ?? {};
    if (!stack || collectorUrl === undefined || emitterKey === undefined) return undefined;
    if (canonicalUrl({ value: collectorUrl, source: stack.path }) !== url) return undefined;
    return { value: emitterKey, kind: 'local stack', source: stack.path };
  }

  /** @throws CommandError when what was found is no address of a ClickHouse */
  async clickhouse(flags: ClickHouseFlags): Promise<ClickHouseSettings> {
    const url = await this.#choose(
      ofFlag(flags.clickhouseUrl, '--clickhouse-url') ?? ofVariable(this.#environment, 'CLICKHOUSE_URL'),
      'clickhouseUrl',
      'http://127.0.0.1:8123',
    );
    const database = await this.#choose(
      ofFlag(flags.clickhouseDatabase, '--clickhouse-database') ?? ofVariable(this.#environment, 'CLICKHOUSE_DATABASE'),
      'clickhouseDatabase',
      'meterline',
    );
    const { clickHouseUrlFault, hostsOf } = await import('@meterline/warehouse');
    const stack = await this.#stackOf(url);
    const { clickhouseHosts: hosts, clickhouseCluster: cluster } = stack?.addresses ?? {};
    const address = requireUrl(hosts === undefined ? url : { ...url, value: hosts }, clickHouseUrlFault);
    const ofUrl = this.#cluster(cluster);
    if (!ofUrl && hostsOf(address.value).length > 1) {
      throw usageError('several addresses of ClickHouse need the name of their cluster in CLICKHOUSE_CLUSTER');
    }
    return {
      url: address,
      ...(await this.#clickhouseLogin(flags, url)),
      database: database.value,
      cluster: ofUrl,
    };
  }

  /** @param ofStack the name of the local stack's cluster, if it is the stack that is used and has one */
  #cluster(ofStack: string | undefined): Cluster | undefined {
    const { CLICKHOUSE_CLUSTER, CLICKHOUSE_INSERT_QUORUM: quorum } = this.#environment;
    const name = CLICKHOUSE_CLUSTER ?? ofStack;
    if (quorum !== undefined && (name === undefined || !/^[1-9]\d?$/.test(quorum))) {
      throw usageError('CLICKHOUSE_INSERT_QUORUM must be a number of replicas, with CLICKHOUSE_CLUSTER');
    }
    return name === undefined ? undefined : { name, insertQuorum: quorum === undefined ? undefined : Number(quorum) };
  }

  /** The local stack, if it is what the setting comes from. */
  async #stackOf({ kind }: Setting): Promise<LocalStackFile | undefined> {
    return kind === 'local stack' ? this.#findLocalStack() : undefined;
  }

  /** The local stack's password is for its own server and user, and goes to no other. */
  async #clickhouseLogin({ clickhouseUser, clickhousePassword }: ClickHouseFlags, url: Setting) {
    const user = clickhouseUser ?? this.#environment.CLICKHOUSE_USER;
    const password = clickhousePassword ?? this.#environment.CLICKHOUSE_PASSWORD;
    if (user === undefined && password === undefined) {
      const stack = await this.#findLocalStack();
      if (stack && stack.path === url.source) {
        return { user: stack.addresses.clickhouseUser, password: stack.addresses.clickhousePassword };
      }
    }
    return { user: user ?? 'default', password: password ?? '' };
  }

  queuePrefix({ queuePrefix }: RedisFlags): string {
    return queuePrefix ?? this.#environment.QUEUE_PREFIX ?? QUEUE_PREFIX;
  }

  /** How many queues are filled in turn. @throws CommandError when QUEUE_SHARDS is no such number */
  queueShards(): number {
    const { QUEUE_SHARDS: text = '1' } = this.#environment;
    const shards = /^\d{1,2}$/.test(text) ? Number(text) : 0;
    if (shards >= 1 && shards <= MAX_QUEUE_SHARDS) return shards;
    throw usageError(`QUEUE_SHARDS must be a whole number from 1 to ${MAX_QUEUE_SHARDS}`);
  }

  /** The file of the price book; undefined for the built-in one. */
  priceBookFile(flag: string | undefined): Setting | undefined {
    return ofFlag(flag, '--book') ?? ofVariable(this.#environment, 'PRICE_BOOK');
  }

  async #choose(
    given: Setting | undefined,
    field: 'redisUrl' | 'clickhouseUrl' | 'clickhouseDatabase',
    fallback: string,
  ): Promise<Setting> {
    if (given) return given;
    const stack = await this.#findLocalStack();
    return stack
      ? { value: stack.addresses[field], kind: 'local stack', source: stack.path }
      : { value: fallback, kind: 'default', source: 'the default' };
  }
}

/** `http://127.0.0.1:8080 (local stack: /project/.meterline/local.json)`. */
export function placeText({ value, kind, source }: Setting): string {
  return kind === 'default' ? `${value} (default)` : `${value} (${kind}: ${source})`;
}

/** Of a key: its kind and the beginning of its id, which is no secret. */
const SHOWN_CHARACTERS = 10;

export function keyStart(key: string): string {
  return `${key.slice(0, SHOWN_CHARACTERS)}…`;
}

/** @param flag `--redis-url` @returns undefined when it was not given */
export function ofFlag(value: string | undefined, flag: string): Setting | undefined {
  return value === undefined ? undefined : { value, kind: 'flag', source: flag };
}

/** @returns undefined when it is not set */
export function ofVariable(environment: Environment, name: keyof Environment): Setting | undefined {
  const value = environment[name];
  return value === undefined ? undefined : { value, kind: 'environment', source: name };
}

/** An address as it may be shown: without its passwords. That of a cluster of ClickHouse is a list. */
export function displayUrl(address: string): string {
  if (isRedisUrl(address)) {
    return address
      .replace(/(:\/\/[^/?#:]*:)[^/?#]*@/, '$1***@')
      .replace(/(sentinelPassword=)[^&]*/, '$1***')
      .replace(/\/$/, '');
  }
  return address.split(',').map(displayHost).join(', ');
}

function displayHost(address: string): string {
  const url = new URL(address);
  if (url.password) url.password = '***';
  return url.href.replace(/\/$/, '');
}

/** One form of an address, so that two can be compared. @throws CommandError when it is none of the web's */
export function canonicalUrl({ value, source }: Pick<Setting, 'value' | 'source'>): string {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw usageError(`the address from ${source} must be a URL such as https://billing.example.com`);
  }
  if (url.username || url.password || url.search || url.hash) {
    throw usageError(`the address from ${source} must be a URL without credentials, ? and #`);
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '').replace(/\/v0$/, '');
}

function requireUrl(setting: Setting, faultOf: (address: string) => string | undefined): Setting {
  const fault = faultOf(setting.value);
  if (fault !== undefined) throw usageError(`the address from ${setting.source} ${fault}`);
  return setting;
}
