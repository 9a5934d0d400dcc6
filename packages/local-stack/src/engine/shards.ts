/** Several embedded engines as one cluster, each of them a shard. */
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { LocalStackError } from '../errors.js';
import type { Shard } from './clickhouse-config.js';
import { findFreePort } from './ports.js';

const ONE_SERVER = 'clickhouse';
const SHARD = /^clickhouse-shard-\d+$/;

/** The folder of an engine's data, and part of the names of its other files. @param shard its number; undefined: it is none */
export function engineLabel(shard: number | undefined): string {
  return shard === undefined ? ONE_SERVER : `${ONE_SERVER}-shard-${shard}`;
}

/**
 * What each engine must know of the others; one that is no shard when there is only one.
 * @param directory of their data
 * @throws LocalStackError when it has the data of another number of them: accounts would be looked for where their events are not
 */
export async function planShards(count: number, directory: string): Promise<(Shard | undefined)[]> {
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
  const numbers = [...(names.includes(ONE_SERVER) ? [1] : []), ...(shards > 0 ? [shards] : [])];
  if (numbers.length === 0 || numbers.includes(count)) return;
  throw new LocalStackError(
    'data_directory_unusable',
    `${directory} has the data of ${numbers.join(' or ')} ClickHouse ${numbers.includes(1) ? 'server' : 'servers'}, and ` +
      `${count} would not find it. Start with --shards ${numbers[0]}, or choose another directory with METERLINE_DATA_DIR.`,
  );
}
