/** What Prometheus reads on the admin ports of the services, each a process of its own; and that a full disk costs the log, not the service. */
import { closeSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { findFreePort } from '@meterline/local-stack';
import { usageEvent, usageEvents } from '../harness/events.js';
import { type Product, startProduct } from '../harness/product.js';
import { openFull } from '../harness/programs.js';
import { enqueueData } from '../harness/queue.js';
import { type HttpProcess, launchService } from '../harness/services.js';
import { uniquePrefix } from '../harness/stack.js';
import { until } from '../harness/waiting.js';
import { adminUrl, scrape } from './scrape.js';

let product: Product;
let query: HttpProcess;
let urls: Readonly<Record<'ingest' | 'query' | 'collector' | 'alerts', string>>;
let key: string;
beforeAll(async () => {
  product = await startProduct();
  const env = { ADMIN_PORT: '0' };
  query = await product.startQuery(env);
  const [ingest, collector, alerts] = await Promise.all([
    product.startIngest(env),
    product.startCollector(env),
    product.startAlerts(env),
  ]);
  urls = {
    ...{ ingest: await adminUrl(ingest), query: await adminUrl(query) },
    ...{ collector: await adminUrl(collector), alerts: await adminUrl(alerts) },
  };
  key = await product.key('metrics-acme');
});
afterAll(() => product.close());

const pageOf = async (url: string) => (await fetch(`${url}/metrics`)).text();

it('metrics.md lists the metrics of the running services, and no others', async () => {
  const pages = await Promise.all(Object.values(urls).map(pageOf));
  const own = pages.flatMap((page) => [...page.matchAll(/^# TYPE (meterline_\S+) /gm)].map(([, name]) => name));
  const document = await readFile(new URL('../../docs/observability/metrics.md', import.meta.url), 'utf8');
  const listed = [...document.matchAll(/^\| `(meterline_\w+)` \|/gm)].map(([, name]) => name);
  expect(listed.sort()).toEqual([...new Set(own)].sort());
});

it('the metrics of the ingest worker count a known stream: accepted, rejected by reason, sent again, jobs and inserts', async () => {
  const startedAt = Date.now();
  const names = { accountId: 'secretive', workspace: 'hidden' };
  const events = usageEvents(0, 20).map((event) => ({ ...event, ...names }));
  await enqueueData(product.queue, { events: [...events, ...events] });
  const rejected = [usageEvent(20, { ...names, usage: -1 }), usageEvent(21, { ...names, usage: 'much' })];
  await enqueueData(product.queue, { events: rejected });
  await enqueueData(product.queue, usageEvent(22, { billingDimension: 'agent_compute_runtime_gbs' }));
  await product.send();

  const { value } = await scrape(urls.ingest);
  const inserts = value('meterline_insert_duration_seconds_count{table="usage_events"}');
  expect(inserts).toBeGreaterThan(0);
  const statement = 'meterline_clickhouse_statement_duration_seconds_count';
  const expected = {
    meterline_jobs_taken_total: 4,
    'meterline_jobs_finished_total{result="acknowledged"}': 4,
    'meterline_jobs_finished_total{result="failed"}': 0,
    meterline_events_accepted_total: 40,
    'meterline_events_rejected_total{reason="invalid_usage"}': 2,
    'meterline_events_rejected_total{reason="dimension_mismatch"}': 1,
    'meterline_events_rejected_total{reason="job_empty"}': 1,
    'meterline_events_rejected_total{reason="no_price"}': 0,
    'meterline_inserted_rows_total{table="usage_events"}': 40,
    'meterline_inserted_rows_total{table="rejected_events"}': 4,
    [`${statement}{statement="insert_usage_events",outcome="ok"}`]: inserts,
    meterline_consuming: 1,
    meterline_batcher_waiting_rows: 0,
  };
  expect(Object.fromEntries(Object.keys(expected).map((series) => [series, value(series)]))).toEqual(expected);
  expect(value('meterline_last_progress_timestamp_seconds')).toBeGreaterThanOrEqual(startedAt / 1000);
  expect(value('process_cpu_seconds_total')).toBeGreaterThan(0);
  // No account, event or workspace.
  expect(await pageOf(urls.ingest)).not.toMatch(/secretive|hidden|0190c5e4/);
});

it('the metrics of the ingest worker have the number of waiting jobs, and how long the oldest has waited', async () => {
  await product.queue.pause();
  const now = Date.now();
  await enqueueData(product.queue, usageEvent(1), { timestamp: now - 90_000 });
  await enqueueData(product.queue, usageEvent(2), { timestamp: now - 30_000 });
  await enqueueData(product.queue, usageEvent(3), { priority: 5 });
  await enqueueData(product.queue, usageEvent(4), { delay: 60_000 });
  const { value } = await scrape(urls.ingest);
  const jobs = (state: string) => value(`meterline_queue_jobs{state="${state}"}`);
  expect(['waiting', 'delayed', 'active', 'failed'].map(jobs)).toEqual([3, 1, 0, 0]);
  const age = value('meterline_queue_oldest_waiting_age_seconds');
  expect(age).toBeGreaterThanOrEqual(90);
  expect(age).toBeLessThanOrEqual((Date.now() - (now - 90_000)) / 1000);
});

const WINDOW = 'startTime=2026-01-01T00:00:00Z&endTime=2026-01-02T00:00:00Z';

async function ask(path: string, init: RequestInit = {}): Promise<number> {
  const response = await fetch(`${query.url}${path}`, { headers: { authorization: `Bearer ${key}` }, ...init });
  await response.arrayBuffer();
  return response.status;
}

it('the metrics of the query service count requests by the route they came to, and never have a path', async () => {
  const responses = [
    await ask(`/v0/accounts/metrics-acme/metrics?${WINDOW}`),
    await ask(`/v0/accounts/metrics-acme/metrics?${WINDOW}`),
    await ask('/v0/accounts/metrics-acme/metrics'),
    await ask(`/v0/accounts/someone-else/metrics?${WINDOW}`),
    await ask('/wp-admin.php'),
    await ask('/v0/nothing'),
    await ask('/v0/accounts', { method: 'BREW' }),
    await ask('/v0/accounts', { method: 'PUT' }),
    await ask('/v0/accounts/metrics-acme/alerts/none', { method: 'PATCH', body: '{}' }),
  ];
  expect(responses).toEqual([200, 200, 400, 403, 404, 404, 501, 405, 404]);
  const { value } = await scrape(urls.query);
  const requests = (route: string, method: string, status: number) =>
    value(`meterline_http_request_duration_seconds_count{route="${route}",method="${method}",status="${status}"}`);
  const metrics = [200, 400, 403].map((status) => requests('/v0/accounts/:accountId/metrics', 'GET', status));
  expect(metrics).toEqual([2, 1, 1]);
  expect([requests('none', 'GET', 404), requests('/v0/accounts', 'other', 405)]).toEqual([2, 1]);
  expect(requests('/v0/accounts/:accountId/alerts/:alertId', 'PATCH', 404)).toBe(1);
  expect(await pageOf(urls.query)).not.toMatch(/metrics-acme|someone-else|wp-admin/);
});

it('the metrics of the query service time each statement by its name', async () => {
  const count = 'meterline_clickhouse_statement_duration_seconds_count{statement="read_metrics",outcome="ok"}';
  const before = (await scrape(urls.query)).value(count) ?? 0;
  expect(await ask(`/v0/accounts/metrics-acme/metrics/enums/resource-types?${WINDOW}`)).toBe(200);
  expect((await scrape(urls.query)).value(count)).toBe(before + 1);
});

it('the metrics of the query service stand on a port of their own, with a health page', async () => {
  expect((await fetch(`${query.url}/metrics`)).status).toBe(404);
  expect((await fetch(`${urls.query}/v0/accounts`)).status).toBe(404);
  expect(await (await fetch(`${urls.query}/healthz`)).json()).toEqual({ status: 'ok' });
});

it('the health page of the alerts service has the end of its last turn, and how many alerts that did not judge', async () => {
  const page = async () => (await fetch(`${urls.alerts}/healthz`)).json();
  await until('a turn has ended', async () => JSON.stringify(await page()).includes('lastTurn'));
  const lastTurn = { endedAt: expect.stringMatching(/Z$/), notJudged: expect.any(Number) };
  expect(await page()).toEqual({ status: 'ok', lastTurn });
});

/** A service as `node services/<name>/dist/main.js > /dev/full` starts it, with a queue of its own: the one above is paused, with jobs. */
function launchWithFullLog(name: 'ingest' | 'query', variables: Record<string, string>) {
  const full = openFull();
  const env = { ...product.env, LOG_LEVEL: 'debug', QUEUE_PREFIX: uniquePrefix(), ADMIN_PORT: '0', ...variables };
  const service = launchService(name, env, full);
  closeSync(full);
  return service;
}

it('with its log on a full disk, a service starts, responds, and stops with code 0', async () => {
  const services = [
    ['query', 'PORT', '/readyz'],
    ['ingest', 'ADMIN_PORT', '/healthz'],
  ] as const;
  const runs = services.map(async ([name, variable, path]) => {
    const port = await findFreePort();
    const service = launchWithFullLog(name, { [variable]: String(port) });
    const get = () => fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: 'close' } });
    await until('it responds', () => get().then(Boolean, () => false));
    // Each request has a line of its own in the log.
    for (let request = 0; request < 20; request += 1) expect((await get()).status).toBe(200);
    expect(await service.stop()).toBe(0);
    expect(service.errorLines()).toEqual([]);
  });
  await Promise.all(runs);
});

it('with its log on a full disk, a service that cannot start ends with code 1 and says why', async () => {
  const nobody = `http://127.0.0.1:${await findFreePort()}`;
  const { exited, errorLines } = launchWithFullLog('query', { PORT: '0', CLICKHOUSE_URL: nobody });
  expect(await exited).toMatchObject({ code: 1 });
  expect(errorLines()).toEqual([expect.stringMatching(/^meterline-query: ClickHouse at /)]);
});
