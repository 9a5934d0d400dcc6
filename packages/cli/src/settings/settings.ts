import { QUEUE_PREFIX } from '@meterline/catalog';
import { usageError } from '../command-error.js';
import type { Environment } from './environment.js';
import type { LocalStackFile } from './local-stack-file.js';

/** A value and where it was found, for messages: `--redis-url`, `REDIS_URL`, a file's path, `the default`. */
export interface Setting {
  readonly value: string;
  readonly source: string;
}

export interface RedisFlags {
  readonly redisUrl?: string;
  readonly queuePrefix?: string;
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
}

interface Candidate {
  readonly value: string | undefined;
  readonly source: string;
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
      { value: redisUrl, source: '--redis-url' },
      { value: this.#environment.REDIS_URL, source: 'REDIS_URL' },
      'redisUrl',
      'redis://127.0.0.1:6379',
    );
    const { redisUrlFault } = await import('@meterline/access');
    return requireUrl(url, redisUrlFault);
  }

  /** @throws CommandError when what was found is no address of a ClickHouse */
  async clickhouse(flags: ClickHouseFlags): Promise<ClickHouseSettings> {
    const url = await this.#choose(
      { value: flags.clickhouseUrl, source: '--clickhouse-url' },
      { value: this.#environment.CLICKHOUSE_URL, source: 'CLICKHOUSE_URL' },
      'clickhouseUrl',
      'http://127.0.0.1:8123',
    );
    const database = await this.#choose(
      { value: flags.clickhouseDatabase, source: '--clickhouse-database' },
      { value: this.#environment.CLICKHOUSE_DATABASE, source: 'CLICKHOUSE_DATABASE' },
      'clickhouseDatabase',
      'meterline',
    );
    const { clickHouseUrlFault } = await import('@meterline/warehouse');
    return {
      url: requireUrl(url, clickHouseUrlFault),
      user: flags.clickhouseUser ?? this.#environment.CLICKHOUSE_USER ?? 'default',
      password: flags.clickhousePassword ?? this.#environment.CLICKHOUSE_PASSWORD ?? '',
      database: database.value,
    };
  }

  queuePrefix({ queuePrefix }: RedisFlags): string {
    return queuePrefix ?? this.#environment.QUEUE_PREFIX ?? QUEUE_PREFIX;
  }

  /** The file of the price book; undefined for the built-in one. */
  priceBookFile(flag: string | undefined): Setting | undefined {
    if (flag !== undefined) return { value: flag, source: '--book' };
    const value = this.#environment.PRICE_BOOK;
    return value === undefined ? undefined : { value, source: 'PRICE_BOOK' };
  }

  async #choose(
    flag: Candidate,
    variable: Candidate,
    field: keyof LocalStackFile['addresses'],
    fallback: string,
  ): Promise<Setting> {
    for (const { value, source } of [flag, variable]) {
      if (value !== undefined) return { value, source };
    }
    const stack = await this.#findLocalStack();
    return stack ? { value: stack.addresses[field], source: stack.path } : { value: fallback, source: 'the default' };
  }
}

/** An address as it may be shown: without its password. */
export function displayUrl(address: string): string {
  const url = new URL(address);
  if (url.password) url.password = '***';
  return url.href.replace(/\/$/, '');
}

function requireUrl(setting: Setting, faultOf: (address: string) => string | undefined): Setting {
  const fault = faultOf(setting.value);
  if (fault !== undefined) throw usageError(`the address from ${setting.source} ${fault}`);
  return setting;
}
