/** The metrics on the admin port of an ingest worker that runs as a process of its own. */
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { usageEvent, usageEvents } from '../harness/events.js';
import { type Product, startProduct } from '../harness/product.js';
import { enqueueData } from '../harness/queue.js';
import type { ServiceProcess } from '../harness/services.js';
import { adminUrl, scrape } from './scrape.js';

jest.setTimeout(180_000);

let product: Product;
let worker: ServiceProcess;
let url: string;
beforeEach(async () => {
  product = await startProduct();
  worker = await product.startIngest({ ADMIN_PORT: '0' });
  url = await adminUrl(worker);
});
afterEach(() => product.close());

it('the metrics of the ingest worker count a known stream: accepted, refused by reason, sent again, jobs and inserts', async () => {
  const startedAt = Date.now();
  const events = usageEvents(0, 20);
  await enqueueData(product.queue, { events: [...events, ...events] });
  await enqueueData(product.queue, { events: [usageEvent(20, { usage: -1 }), usageEvent(21, { usage: 'much' })] });
  await enqueueData(product.queue, usageEvent(22, { billingDimension: 'agent_compute_runtime_gbs' }));
  await product.send();

  const { value } = await scrape(url);
  expect(value('meterline_jobs_taken_total')).toBe(4);
  expect(value('meterline_jobs_finished_total{result="acknowledged"}')).toBe(4);
  expect(value('meterline_jobs_finished_total{result="failed"}')).toBe(0);
  expect(value('meterline_events_accepted_total')).toBe(40);
  expect(value('meterline_events_rejected_total{reason="invalid_usage"}')).toBe(2);
  expect(value('meterline_events_rejected_total{reason="dimension_mismatch"}')).toBe(1);
  expect(value('meterline_events_rejected_total{reason="job_empty"}')).toBe(1);
  expect(value('meterline_events_rejected_total{reason="no_price"}')).toBe(0);
  expect(value('meterline_inserted_rows_total{table="usage_events"}')).toBe(40);
  expect(value('meterline_inserted_rows_total{table="rejected_events"}')).toBe(4);
  const inserts = value('meterline_insert_duration_seconds_count{table="usage_events"}');
  expect(inserts).toBeGreaterThan(0);
  expect(
    value('meterline_clickhouse_statement_duration_seconds_count{statement="insert_usage_events",outcome="ok"}'),
  ).toBe(inserts);
  expect(value('meterline_consuming')).toBe(1);
  expect(value('meterline_batcher_waiting_rows')).toBe(0);
  expect(value('meterline_last_progress_timestamp_seconds')).toBeGreaterThanOrEqual(startedAt / 1000);
  expect(value('process_cpu_seconds_total')).toBeGreaterThan(0);
});

it('the metrics of the ingest worker have the number of waiting jobs, and how long the oldest has waited', async () => {
  await product.queue.pause();
  const now = Date.now();
  await enqueueData(product.queue, usageEvent(1), { timestamp: now - 90_000 });
  await enqueueData(product.queue, usageEvent(2), { timestamp: now - 30_000 });
  await enqueueData(product.queue, usageEvent(3), { priority: 5 });
  await enqueueData(product.queue, usageEvent(4), { delay: 60_000 });
  const { value } = await scrape(url);
  expect(value('meterline_queue_jobs{state="waiting"}')).toBe(3);
  expect(value('meterline_queue_jobs{state="delayed"}')).toBe(1);
  expect(value('meterline_queue_jobs{state="active"}')).toBe(0);
  expect(value('meterline_queue_jobs{state="failed"}')).toBe(0);
  expect(value('meterline_queue_oldest_waiting_age_seconds')).toBeGreaterThanOrEqual(90);
  const sinceThen = (Date.now() - (now - 90_000)) / 1000;
  expect(value('meterline_queue_oldest_waiting_age_seconds')).toBeLessThanOrEqual(sinceThen);
});

it('the metrics of the ingest worker name no account, event or workspace', async () => {
  await enqueueData(product.queue, { events: [usageEvent(1, { accountId: 'secretive', workspace: 'hidden' })] });
  await product.send(usageEvent(2, { accountId: 'secretive', usage: -1 }));
  const page = await (await fetch(`${url}/metrics`)).text();
  expect(page).not.toMatch(/secretive|hidden|0190c5e4/);
});
