/** ClickHouse and Redis side by side in one data directory: for `npm start`, tests and benches. */
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
  /** Where the data stays, or a directory that is open. Default: a new temporary directory that `stop` removes. */
  readonly dataDir?: string | DataDirectory | undefined;
  /** How many ClickHouse servers, in one cluster if there are several; 0 starts none. Default: 1. */
  readonly shards?: number | undefined;
  /** Default: true. */
  readonly redis?: boolean | undefined;
  /** The one that the users of clickhouse/users.xml may use. Default: meterline. */
  readonly database?: string | undefined;
  /** Settings of the profile of ClickHouse's users, by name. Default: none. */
  readonly profile?: Readonly<Record<string, string>> | undefined;
  /** The prefix of the queues that users of Redis may use. Default: any. */
  readonly queuePrefix?: string | undefined;
  /** Called with one line before a step that takes long, such as installing Redis. */
  readonly say?: ((line: string) => void) | undefined;
}

export interface Servers {
  /** Locked until `stop`. */
  readonly directory: DataDirectory;
  readonly shards: readonly RunningClickHouse[];
  /** The first of the shards. @throws Error when there is none */
  readonly clickhouse: RunningClickHouse;
  /** @throws Error when there is none */
  readonly redis: RunningRedis;
  /** Stops all servers, by force if they do not end. Safe to call again. */
  stop(): Promise<void>;
}

/**
 * Starts all that is wanted, or nothing.
 * @throws LocalStackError
 */
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
    // What has started is stopped if another one fails.
    await Promise.allSettled([...engines, redis]);
    const [shards, only] = [await Promise.all(engines), await redis];
    return {
      ...{ directory, shards, stop },
      get clickhouse() {
        return wanted(shards[0]);
      },
      get redis() {
        return wanted(only);
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function wanted<T>(server: T | undefined): T {
  if (!server) throw new Error('this server was not asked for');
  return server;
}

const SHARD = /^clickhouse-shard-\d+$/;

/**
 * What each engine must know of the others; one that is no shard when there is only one.
 * @param directory of their data
 * @throws LocalStackError when it has the data of another number of them: accounts would be looked for where their events are not
 */
export async function planShards(count: number, directory: string): Promise<(Shard | undefined)[]> {
  if (count === 0) return [];
  await requireSameNumber(count, directory);
  if (count === 1) return [undefined];
  const tcpPorts = await Promise.all(Array.from({ length: count }, () => findFreePort()));
  const plan = tcpPorts.map((_, index) => ({ number: index + 1, tcpPorts }));
  // All of them, so that a start that breaks off leaves no smaller number.
  for (const { number } of plan) await mkdir(join(directory, engineLabel(number)), { recursive: true, mode: 0o700 });
  return plan;
}

async function requireSameNumber(count: number, directory: string): Promise<void> {
  const names = await readdir(directory);
  const shards = names.filter((name) => SHARD.test(name)).length;
  const numbers = [...(names.includes(engineLabel(undefined)) ? [1] : []), ...(shards > 0 ? [shards] : [])];
  if (numbers.length === 0 || numbers.includes(count)) return;
  throw new LocalStackError(
    `${directory} has the data of ${numbers.join(' or ')} ClickHouse ${numbers.includes(1) ? 'server' : 'servers'}, and ` +
      `${count} would not find it. Start with --shards ${numbers[0]}, or choose another directory with METERLINE_DATA_DIR.`,
  );
}
