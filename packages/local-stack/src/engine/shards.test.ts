import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { planShards } from './shards.js';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'meterline-shards-'));
});
afterEach(() => rm(directory, { recursive: true }));

const numbers = async (count: number) => (await planShards(count, directory)).map((shard) => shard?.number);

it('one server is no shard, and several are numbered from 1, each with the addresses of all', async () => {
  expect(await planShards(1, directory)).toEqual([undefined]);
  const [first, second] = await planShards(2, directory);
  expect([first?.number, second?.number]).toEqual([1, 2]);
  expect(first?.tcpPorts).toEqual(second?.tcpPorts);
  expect(new Set(first?.tcpPorts).size).toBe(2);
});

it('as many as before find their data again', async () => {
  expect(await numbers(3)).toEqual([1, 2, 3]);
  expect(await numbers(3)).toEqual([1, 2, 3]);
});

it('another number than before is refused: events would be looked for where they are not', async () => {
  await planShards(2, directory);
  const before = await readdir(directory);
  const refused = { code: 'data_directory_unusable', message: expect.stringContaining('Start with --shards 2,') };
  for (const count of [1, 3]) await expect(planShards(count, directory)).rejects.toMatchObject(refused);
  expect(await readdir(directory)).toEqual(before);
});

it('shards are refused where one server was', async () => {
  await mkdir(join(directory, 'clickhouse'));
  await expect(planShards(2, directory)).rejects.toThrow('has the data of 1 ClickHouse server');
  expect(await numbers(1)).toEqual([undefined]);
});
