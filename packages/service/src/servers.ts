/** Reaching ClickHouse and Redis when a service starts, the error when it cannot, and whether Redis is full. */
import { moreInformative, type RedisClient, redisFailureKind, serversOf } from '@meterline/access';
import { redisPlace } from '@meterline/catalog';
import {
  type ClickHouseFailure,
  ClusterError,
  checkConnection,
  clickHouseFailureKind,
  countShards,
  createWarehouse,
  hostsOf,
  MigrationError,
  migrate,
  type WarehouseOptions,
} from '@meterline/warehouse';
import type { Logger } from 'pino';

/** The service cannot start; the message is one line that says what to fix. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

/** Characters; a server that is not ours may answer with a page. */
const LONGEST_REASON = 300;

/** @param message what does not work; the cause's own words, if it has any, follow it in brackets */
export function startError(message: string, cause: unknown): StartError {
  const reason = reasonOf(cause);
  return new StartError(reason === '' ? message : `${message} (${reason})`, { cause });
}

export interface Listening {
  readonly port: number;
  /** The variable that the port came from. */
  readonly variable: string;
  /** The address in LISTEN_HOST; undefined: all of this machine. */
  readonly host: string | undefined;
}

/** A port could not be listened on. */
export function listenError({ port, variable, host }: Listening, cause: unknown): StartError {
  const place = host === undefined ? `port ${port}` : `port ${port} of ${host}`;
  const others = host === undefined ? '' : ', or LISTEN_HOST to an address of this machine';
  return startError(`cannot listen on ${place}; free it or set ${variable} to another${others}`, cause);
}

const CLICKHOUSE_FAILURES = {
  refused: 'refuses',
  foreign: 'does not answer as ClickHouse does',
  away: 'does not answer',
} as const satisfies Record<ClickHouseFailure, string>;

/**
 * Checks that ClickHouse answers and brings its schema up to date: of a cluster the hosts that answer, because the others concern
 * their accounts alone.
 * @returns how many shards there are
 * @throws StartError
 */
export async function prepareClickHouse(options: WarehouseOptions, log: Logger): Promise<number> {
  // Our own database may not be there yet; `default` always is.
  const server = createWarehouse({ ...options, database: 'default' });
  try {
    await checkConnection(server);
  } catch (error) {
    throw startError(
      `ClickHouse at ${hostOf(options.url)} ${CLICKHOUSE_FAILURES[clickHouseFailureKind(error)]}`,
      error,
    );
  } finally {
    await server.close();
  }
  const present = { ...options, url: await presentHosts(options, log) };
  try {
    const migrations = await migrate(present, (line) => log.info({ event: 'migrating' }, line));
    if (migrations.length > 0) log.info({ event: 'migrated', migrations }, 'the database schema is up to date');
    return await countShards(present);
  } catch (error) {
    if (error instanceof MigrationError || error instanceof ClusterError) {
      throw new StartError(error.message, { cause: error });
    }
    throw startError(`the schema in ClickHouse at ${hostOf(options.url)} could not be brought up to date`, error);
  }
}

async function presentHosts(options: WarehouseOptions, log: Logger): Promise<string> {
  const hosts = hostsOf(options.url);
  if (hosts.length === 1) return options.url;
  const answers = await Promise.all(hosts.map((url) => answersPing({ ...options, url })));
  const [present, away] = [true, false].map((wanted) => hosts.filter((_, index) => answers[index] === wanted));
  if (away && away.length > 0) {
    log.warn(
      { event: 'hosts_away', hosts: away.map(hostOf) },
      'hosts of ClickHouse do not answer; their schema is not checked',
    );
  }
  return (present ?? []).join(',');
}

async function answersPing(options: WarehouseOptions): Promise<boolean> {
  const host = createWarehouse(options);
  try {
    return await host.ping();
  } finally {
    await host.close();
  }
}

/**
 * Connects a lazy connection and asks for an answer.
 * @throws StartError, with the reason of the error event: `connect` alone would only say that the connection was closed
 */
export async function connectRedis(redis: RedisClient, url: string): Promise<void> {
  let reason: unknown;
  const remember = (error: unknown) => {
    reason = moreInformative(reason, error);
  };
  redis.on('error', remember);
  try {
    await redis.connect();
    await redis.ping();
    // It answers even if the database that the address names could not be selected, and would use the first one.
    if (reason !== undefined) throw reason;
  } catch (error) {
    throw redisError(redisPlace(url), reason ?? error);
  } finally {
    redis.off('error', remember);
  }
}

function redisError(host: string, cause: unknown): StartError {
  switch (redisFailureKind(cause)) {
    case 'refused':
      return startError(`Redis at ${host} refuses`, cause);
    case 'foreign':
      return new StartError(`what answers at ${host} is not Redis`, { cause });
    case 'away':
      return startError(`Redis at ${host} does not answer`, cause);
  }
}

/** Connecting to a name with several addresses fails with one error for each of them and no message of its own. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ');
  const text = (error instanceof Error ? error.message : String(error)).replace(/\s+/g, ' ').trim();
  return text.length > LONGEST_REASON ? `${text.slice(0, LONGEST_REASON)}…` : text;
}

/** Without the credentials that a URL may hold. @param urls one, or several that are separated by commas */
function hostOf(urls: string): string {
  return hostsOf(urls)
    .map((url) => new URL(url).host)
    .join(', ');
}

/**
 * A full Redis refuses every command that could need memory, such as those that add jobs. A Redis Cluster counts as full when
 * one of its masters is.
 * @throws when Redis does not answer
 */
export async function isRedisFull(redis: RedisClient): Promise<boolean> {
  return (await Promise.all(serversOf(redis).map((server) => server.info('memory')))).some(isFull);
}

/** @param memory the section of INFO. Source: Redis, getMaxmemoryState() in evict.c: buffers of replicas do not count */
export function isFull(memory: string): boolean {
  const field = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(memory)?.[1] ?? 0);
  const limit = field('maxmemory');
  return limit > 0 && field('used_memory') - field('mem_not_counted_for_evict') > limit;
}
