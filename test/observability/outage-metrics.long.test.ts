/** The metrics on the admin ports while a server is away. A scrape must not hang: it would report nothing. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import {
  DataDirectory,
  type RunningClickHouse,
  type RunningRedis,
  startClickHouse,
  startRedis,
} from '@meterline/local-stack';
import { freeze } from '../harness/faults.js';
import { type Product, startProduct } from '../harness/product.js';
import { drained, enqueue, PATIENCE, until } from '../harness/queue.js';
import { adminUrl, scrape } from './scrape.js';

jest.setTimeout(300_000);

/** After which Prometheus gives up. */
const SCRAPE_SECONDS = 10;

let directory: DataDirectory;
let clickhouse: RunningClickHouse;
let redis: RunningRedis;
let product: Product;
beforeEach(async () => {
  directory = await DataDirectory.open(await mkdtemp(join(tmpdir(), 'meterline-outage-metrics-')));
  [clickhouse, redis] = await Promise.all([
    startClickHouse({ dataDir: directory }),
    startRedis({ dataDir: directory }),
  ]);
  product = await startProduct({ clickhouse, redisUrl: redis.url });
});
afterEach(async () => {
  await product.close();
  await Promise.all([redis.kill(), clickhouse.kill()]);
  await rm(directory.path, { recursive: true, maxRetries: 20 });
});

async function restartRedis(): Promise<void> {
  redis = await startRedis({ dataDir: directory, port: redis.port });
}

async function quickScrape(url: string) {
  const started = performance.now();
  const page = await scrape(url);
  expect((performance.now() - started) / 1000).toBeLessThan(SCRAPE_SECONDS * PATIENCE);
  return page;
}

it('the ingest worker reports that ClickHouse is away, the inserts that are tried again, and its return', async () => {
  const url = await adminUrl(await product.startIngest({ ADMIN_PORT: '0' }));
  expect((await scrape(url)).value('meterline_outage{server="ClickHouse"}')).toBe(0);
  await clickhouse.kill();
  await enqueue(product.queue, 10, 2);
  await until('an insert is tried again', 20_000, async () => {
    return ((await quickScrape(url)).value('meterline_insert_retries_total{table="usage_events"}') ?? 0) >= 2;
  });
  const away = await quickScrape(url);
  expect(away.value('meterline_outage{server="ClickHouse"}')).toBe(1);
  expect(away.value('meterline_outage{server="Redis"}')).toBe(0);
  expect(away.value('meterline_consuming')).toBe(1);
  expect(away.value('meterline_events_accepted_total')).toBe(0);
  expect(
    away.value(
      'meterline_clickhouse_statement_duration_seconds_count{statement="insert_usage_events",outcome="unanswered"}',
    ),
  ).toBeGreaterThanOrEqual(2);

  clickhouse = await startClickHouse({ dataDir: directory, httpPort: clickhouse.httpPort });
  await drained(product.queue);
  const back = await quickScrape(url);
  expect(back.value('meterline_outage{server="ClickHouse"}')).toBe(0);
  expect(back.value('meterline_events_accepted_total')).toBe(20);
});

it.each([
  ['is dead', () => redis.kill(), restartRedis],
  ['hangs', () => freeze(redis.pid), async () => void process.kill(redis.pid, 'SIGCONT')],
])(
  'the ingest worker reports all metrics but those of the queue, and the outage and its end, when Redis %s',
  async (_, fail, restore) => {
    const url = await adminUrl(await product.startIngest({ ADMIN_PORT: '0' }));
    expect((await quickScrape(url)).value('meterline_queue_jobs{state="waiting"}')).toBe(0);
    await fail();
    const { value, names } = await quickScrape(url);
    expect(names).not.toContain('meterline_queue_jobs');
    expect(names).not.toContain('meterline_queue_oldest_waiting_age_seconds');
    expect(value('meterline_events_accepted_total')).toBe(0);
    expect(value('process_resident_memory_bytes')).toBeGreaterThan(0);
    expect(value('meterline_outage{server="Redis"}')).toBe(1);
    expect(value('meterline_outage{server="ClickHouse"}')).toBe(0);
    await restore();
    await until('the queue is reported again', 20_000, async () => {
      return (await quickScrape(url)).value('meterline_queue_jobs{state="waiting"}') === 0;
    });
    await until('the outage is over', 20_000, async () => {
      return (await quickScrape(url)).value('meterline_outage{server="Redis"}') === 0;
    });
  },
);

it('the query service reports each server that is away, and its return', async () => {
  const query = await product.startQuery({ ADMIN_PORT: '0' });
  const url = await adminUrl(query);
  // Nobody else asks the service anything.
  const outages = async () => {
    const { value } = await quickScrape(url);
    return [value('meterline_outage{server="ClickHouse"}'), value('meterline_outage{server="Redis"}')].join();
  };
  expect(await outages()).toBe('0,0');
  await clickhouse.kill();
  await until('ClickHouse is missed', 10_000, async () => (await outages()) === '1,0');
  await redis.kill();
  await until('Redis is missed too', 10_000, async () => (await outages()) === '1,1');
  [clickhouse] = await Promise.all([
    startClickHouse({ dataDir: directory, httpPort: clickhouse.httpPort }),
    restartRedis(),
  ]);
  await until('both are back', 20_000, async () => (await outages()) === '0,0');
});

it('the query service reports a server that hangs, whose connections stay open', async () => {
  const query = await product.startQuery({ ADMIN_PORT: '0' });
  const url = await adminUrl(query);
  for (const [server, pid] of [
    ['Redis', redis.pid],
    ['ClickHouse', clickhouse.pid],
  ] as const) {
    const outage = async () => (await quickScrape(url)).value(`meterline_outage{server="${server}"}`);
    expect(await outage()).toBe(0);
    await freeze(pid);
    expect(await outage()).toBe(1);
    process.kill(pid, 'SIGCONT');
    await until(`${server} is back`, 20_000, async () => (await outage()) === 0);
  }
});
