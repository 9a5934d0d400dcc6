import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensurePasswords, type RunningClickHouse, startClickHouse } from './clickhouse.js';
import { DataDirectory } from './data-directory.js';
import { type RunningRedis, startRedis } from './redis.js';
import { planShards } from './shards.js';

export interface LocalStackOptions {
  /** Where the data stays. Default: a new temporary directory that `stop` removes. */
  dataDir?: string | undefined;
  /** How many ClickHouse servers, in one cluster if there are several. Default: 1. */
  shards?: number | undefined;
  /** Called with one line before a step that takes long, such as installing Redis. */
  say?: ((line: string) => void) | undefined;
}

export interface LocalStack {
  /** Locked until `stop`. A server that was killed may be started again in it. */
  readonly directory: DataDirectory;
  readonly clickhouse: RunningClickHouse;
  /** It and the other shards, in their order. */
  readonly shards: readonly RunningClickHouse[];
  readonly redis: RunningRedis;
  /** Stops both servers, by force if they do not end. Safe to call again. */
  stop(): Promise<void>;
}

/**
 * Starts a ClickHouse and a Redis in one data directory, or neither.
 *
 * @throws LocalStackError
 * @throws RedisUnavailableError
 */
export async function startLocalStack(options: LocalStackOptions = {}): Promise<LocalStack> {
  const directory = await DataDirectory.open(options.dataDir ?? (await mkdtemp(join(tmpdir(), 'meterline-'))));
  const plan = await planShards(options.shards ?? 1, directory.path).catch(async (error: unknown) => {
    await directory.close();
    throw error;
  });
  await ensurePasswords(directory.path);
  const [shards, [redis]] = await Promise.all([
    Promise.allSettled(plan.map((shard) => startClickHouse({ dataDir: directory, shard }))),
    Promise.allSettled([startRedis({ dataDir: directory, say: options.say })]),
  ]);
  const started = [...shards, redis];
  const stop = async () => {
    await Promise.all(started.map((server) => (server.status === 'fulfilled' ? server.value.stop() : undefined)));
    await directory.close();
    if (options.dataDir === undefined) await rm(directory.path, { recursive: true, force: true, maxRetries: 5 });
  };

  const running = shards.flatMap((shard) => (shard.status === 'fulfilled' ? [shard.value] : []));
  const [clickhouse] = running;
  if (clickhouse && running.length === plan.length && redis.status === 'fulfilled') {
    return { directory, clickhouse, shards: running, redis: redis.value, stop };
  }
  await stop();
  throw started.find((server) => server.status === 'rejected')?.reason;
}
