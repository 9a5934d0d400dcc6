/** Months that are closed and dropped under a worker and an API that run, by the command line. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { runCommand } from '../cli/run-command.js';
import { usageEvent } from '../harness/events.js';
import { type Product, startProduct } from '../harness/product.js';
import { drained, rejectedRows } from '../harness/queue.js';
import { type HttpProcess, NO_LIMITS, type ServiceProcess, UNLIMITED, withConstants } from '../harness/services.js';
import { select, uniquePrefix } from '../harness/stack.js';
import { until } from '../harness/waiting.js';

const account = uniquePrefix();
let product: Product;
let worker: ServiceProcess;
let api: HttpProcess;
let eventsApi: HttpProcess;
let key: string;
beforeAll(async () => {
  product = await startProduct();
  key = await product.key(account);
  [worker, api, eventsApi] = await Promise.all([
    product.startIngest(withConstants({}, { maintenanceEveryMs: 200 })),
    product.startQuery(NO_LIMITS),
    product.startQuery({ ...NO_LIMITS, METERLINE_CONSTANTS: JSON.stringify({ ...UNLIMITED, eventsOnly: 1 }) }),
  ]);
});
afterAll(() => product.close());

const event = (n: number, timestamp: string) => usageEvent(n, { accountId: account, resourceName: `r${n}`, timestamp });

async function meterline(...args: string[]) {
  const { code, stdout, stderr } = await runCommand(args, { env: product.env });
  return { code, text: stdout + stderr };
}

async function ask(path: string, window: readonly [string, string], service = api) {
  const [startTime, endTime] = window;
  const response = await fetch(
    `${service.url}/v0/accounts/${account}/${path}${path.includes('?') ? '&' : '?'}startTime=${startTime}&endTime=${endTime}`,
    { headers: { authorization: `Bearer ${key}`, connection: 'close' } },
  );
  return { status: response.status, body: await response.json() };
}

/** The usage of the one dimension that was used. */
async function usage(window: readonly [string, string]): Promise<number> {
  return (await ask('metrics?groupBy=billing_dimension', window)).body.summary.totalUsage;
}

const months = (count: number) =>
  until('the worker knows of the closing', async () => {
    return worker.entries().filter(({ event: name }) => name === 'months_closed').length === count;
  });

const YEAR = ['2026-01-01T00:00:00Z', '2026-06-01T00:00:00Z'] as const;
const HALF_HOUR = ['2026-01-05T10:30:00Z', '2026-03-01T00:00:00Z'] as const;

it('figures stay as they are when months are closed, opened again, closed and dropped', async () => {
  await product.send(
    event(1, '2026-01-05T10:10:00Z'),
    event(2, '2026-01-05T10:40:00Z'),
    event(3, '2026-02-01T00:00:00Z'),
  );
  await worker.entry(({ event: name, grain }) => name === 'sealed' && grain === 'daily');
  expect(await usage(HALF_HOUR)).toBe(2);

  expect(await meterline('retention', 'close', '--before', '2026-02', '--yes')).toMatchObject({ code: 0 });
  await months(1);
  const late = event(4, '2026-01-31T23:59:59.999Z');
  const job = await product.send(late, event(5, '2026-02-01T00:00:00Z'));
  expect(await rejectedRows(product.warehouse, job)).toMatchObject([
    { position: 0, account_id: account, reason: 'too_old', payload: JSON.stringify(late) },
  ]);
  expect(await usage(YEAR)).toBe(4);

  expect(await meterline('retention', 'reopen', '--from', '2026-01')).toMatchObject({ code: 0 });
  await months(2);
  expect(await meterline('rejected', 'replay', '--all', '--reason', 'too_old')).toMatchObject({ code: 0 });
  await drained(product.queue);
  const all = await ask('metrics?groupBy=resource_name', YEAR);
  expect(await usage(YEAR)).toBe(5);

  expect(await meterline('retention', 'close', '--before', '2026-02', '--yes')).toMatchObject({ code: 0 });
  expect(await meterline('retention', 'drop', '--dry-run')).toMatchObject({ code: 0 });
  expect((await meterline('retention', 'status')).text).toMatch(/2026-01 +3 +closed/);
  expect(await meterline('retention', 'drop', '--yes')).toMatchObject({ code: 0 });
  expect((await meterline('retention', 'status')).text).not.toContain('2026-01 ');

  // A process may know for a second what it knew before.
  await until('the API knows', async () => (await ask('metrics', HALF_HOUR)).status === 400);
  expect(await ask('metrics?groupBy=resource_name', YEAR)).toEqual(all);
  expect(await ask('metrics?groupBy=resource_name', YEAR, eventsApi)).toEqual(all);
  const refused = { code: 400, error: 'events_dropped' };
  expect(await ask('metrics', HALF_HOUR)).toMatchObject({
    body: {
      ...refused,
      details: [{ parameter: 'startTime', message: expect.stringContaining('2026-01-05T10:00:00Z') }],
    },
  });
  const untilHalfPast = ['2026-01-05T10:00:00Z', '2026-01-05T10:30:00Z'] as const;
  for (const path of ['metrics', 'metrics/enums/resource-types']) {
    expect(await ask(path, untilHalfPast)).toMatchObject({
      body: {
        ...refused,
        details: [{ parameter: 'endTime', message: expect.stringContaining('2026-01-05T11:00:00Z') }],
      },
    });
  }
  expect(await ask('events', YEAR)).toMatchObject({ body: refused });
  const fromFebruary = ['2026-02-01T00:00:00Z', '2026-06-01T00:00:00Z'] as const;
  expect(await ask('events', fromFebruary)).toMatchObject({ status: 200, body: { data: [{}, {}] } });
  expect(await ask('metrics/enums/resource-types', YEAR)).toMatchObject({ body: { values: ['sandbox'] } });

  const window = ['--from', YEAR[0], '--to', YEAR[1]];
  expect(await meterline('reprice', '--account', account, ...window)).toMatchObject({
    code: 1,
    text: expect.stringContaining('months before 2026-02-01T00:00:00Z are closed'),
  });
  expect(await meterline('audit')).toMatchObject({ code: 0, text: expect.stringContaining('2026-02-01T00:00:00Z') });
  expect(await meterline('retention', 'reopen', '--from', '2026-01')).toMatchObject({ code: 1 });

  expect(await meterline('erase', '--account', account, '--confirm', account)).toMatchObject({ code: 0 });
  expect(await select(product.warehouse, 'SELECT account_id FROM usage_hourly FINAL')).toEqual([]);
});
