/** Starts ClickHouse and Redis in one data directory, for `npm start`, tests and benchmarks. */
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { engineLabel, type RunningClickHouse, startClickHouse } from './clickhouse.js';
import type { Shard } from './clickhouse-config.js';
import { DataDirectory } from './data-directory.js';
import { LocalStackError } from './errors.js';
import { findFreePort } from './ports.js';
import { type RunningRedis, startRedis } from './redis.js';

export interface ServersOptions {
  /** Path of the data directory, or an open directory (default: a new temporary directory, which `stop` removes). */
  readonly dataDir?: string | DataDirectory | undefined;
  /** Number of ClickHouse servers (default: 1). 0 starts no server, and several servers form a cluster. */
  readonly shards?: number | undefined;
  /** Whether to start Redis (default: true). */
  readonly redis?: boolean | undefined;
  /** Database that the users of clickhouse/users.xml can access (default: meterline). */
  readonly database?: string | undefined;
  readonly profile?: Readonly<Record<string, string>> | undefined;
  /** Prefix of the queues that the Redis users can access (default: any prefix). */
  readonly queuePrefix?: string | undefined;
  /** Called with one line before a slow step, such as installing Redis. */
  readonly say?: ((line: string) => void) | undefined;
}

export interface Servers {
  readonly directory: DataDirectory;
  readonly shards: readonly RunningClickHouse[];
  /** The first shard. @throws Error if no ClickHouse was requested */
  readonly clickhouse: RunningClickHouse;
  /** @throws Error if Redis was not requested */
  readonly redis: RunningRedis;
  /** Stops all servers, by force if necessary. Safe to call again. */
  stop(): Promise<void>;
}

/** Starts the requested servers. If one server fails to start, stops the others. @throws LocalStackError */
export async function startServers(options: ServersOptions = {}): Promise<Servers> {
  const { dataDir, shards: count = 1, redis: hasRedis = true, database, profile, queuePrefix, say } = options;
  const directory =
    dataDir instanceof DataDirectory
      ? dataDir
      : await DataDirectory.open(dataDir ?? (await mkdtemp(join(tmpdir(), 'meterline-'))));
  const running: { stop(): Promise<void> }[] = [];
  const started = async <T extends RunningClickHouse | RunningRedis>(start: Promise<T>) => {
    running.push(await start);
    return start;
  };
  const stop = async () => {
    await Promise.all(running.map((server) => server.stop()));
    if (directory !== dataDir) directory.close();
    if (dataDir === undefined) await rm(directory.path, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    const plan = await planShards(count, directory.path);
    const engines = plan.map((shard) => started(startClickHouse({ dataDir: directory, shard, database, profile })));
    const redis = hasRedis ? started(startRedis({ dataDir: directory, queuePrefix, say })) : undefined;
    // Wait for all starts, even if one of them fails, so that `stop` knows every server that has started.
    await Promise.allSettled([...engines, redis]);
    const [shards, only] = [await Promise.all(engines), await redis];
    return {
      ...{ directory, shards, stop },
      get clickhouse() {
        return required(shards[0]);
      },
      get redis() {
        return required(only);
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function required<T>(server: T | undefined): T {
  if (!server) throw new Error('this server was not requested');
  return server;
}

const SHARD = /^clickhouse-shard-\d+$/;

/**
 * Returns the cluster settings of each engine, or undefined for a single engine.
 * @throws LocalStackError if the directory has the data of another number of engines, because queries would miss the events of some accounts
 */
export async function planShards(count: number, directory: string): Promise<(Shard | undefined)[]> {
  if (count === 0) return [];
  await requireSameNumber(count, directory);
  if (count === 1) return [undefined];
  const tcpPorts = await Promise.all(Array.from({ length: count }, () => findFreePort()));
  const plan = tcpPorts.map((_, index) => ({ number: index + 1, tcpPorts }));
  // Create all folders before the engines start, because a later start counts them, even if this start is interrupted.
  for (const { number } of plan) await mkdir(join(directory, engineLabel(number)), { recursive: true, mode: 0o700 });
  return plan;
}

async function requireSameNumber(count: number, directory: string): Promise<void> {
  const names = await readdir(directory);
  const shards = names.filter((name) => SHARD.test(name)).length;
  const numbers = [...(names.includes(engineLabel(undefined)) ? [1] : []), ...(shards > 0 ? [shards] : [])];
  if (numbers.length === 0 || numbers.includes(count)) return;
  throw new LocalStackError(
    `${directory} has data of ${numbers.join(' or ')} ClickHouse ${numbers.includes(1) ? 'server' : 'servers'}, which ` +
      `${count} cannot read. Start with --shards ${numbers[0]}, or set METERLINE_DATA_DIR to another directory.`,
  );
}
