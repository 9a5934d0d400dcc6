/** `meterline export focus` against the real API: files keep the rules of FOCUS 1.2, add up to /metrics, and are never half written. */
import { chmod, lstat, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { MeterlineClient } from '@meterline/client';
import { exportFocus } from '@meterline/client/focus';
import { runCommand } from '../cli/run-command.js';
import { startApi, type TestApi } from '../harness/api.js';
import { event } from '../harness/events.js';
import { withApiProxy } from '../harness/services.js';
import { execute, select } from '../harness/stack.js';
import { testFolder } from '../harness/test-folder.js';
import { type DataSet, faultsOf, parseCsv, SPECIFICATION, sumOf } from './check.js';

const NAME = 'Acme "West", =1+1';
const ODD = '"quoted", semi;colon\u2028=SUM(A1) ';
const OCTOBER = { startTime: '2025-10-01T00:00:00Z', endTime: '2025-11-01T00:00:00Z' } as const;
const MONTH = ['export', 'focus', '--account', 'acme', '--month', '2025-10'];

let api: TestApi;
let env: Record<string, string>;
const folder = testFolder();
/** The key of an account whose month has three pages. */
let wideKey: string;

beforeAll(async () => {
  api = await startApi();
  const of = { account: 'acme', accountName: NAME, role: 'admin', clientId: 'finance' } as const;
  const { key } = await api.keys.create(of, api.clock.now);
  env = { METERLINE_API_URL: api.url, METERLINE_API_KEY: key };
  const box = { resourceName: 'box', workspace: 'prod' } as const;
  const corrected = { ...box, eventId: '018f0000-0000-7000-8000-000000000001', at: '2025-10-03T08:00:00Z' };
  const voided = { ...box, eventId: '018f0000-0000-7000-8000-000000000002', at: '2025-10-04T08:00:00Z' };
  await api.seed([
    // Two prices within a day, and digits that no double holds.
    event({ ...box, at: '2025-10-01T00:00:00Z', usage: '0.1', cost: '0.000001150001' }),
    event({ ...box, at: '2025-10-01T12:00:00Z', usage: '0.2', cost: '7.2' }),
    event({ ...box, usage: '999999999999999.999999999', cost: '12345678901234567.123456789012' }),
    event({ ...corrected, usage: '500', cost: '500' }),
    event({ ...voided, usage: '70', cost: '70' }),
    // Free, and nothing at all.
    event({ ...box, at: '2025-10-05T08:00:00Z', usage: '3', cost: '0' }),
    event({ ...box, at: '2025-10-06T08:00:00Z', usage: '0', cost: '0' }),
    event({ ...box, workspace: 'dev, "too"', at: '2025-10-31T23:59:59.999Z', cost: '0.1' }),
    event({ ...box, at: '2025-11-01T00:00:00Z', cost: '1000' }),
    event({ ...box, at: '2025-09-30T23:59:59.999Z', cost: '2000' }),
    event({
      resourceType: 'agent',
      billingDimension: 'agent_async_requests_count',
      resourceName: ODD,
      usage: '250000',
      cost: '0.05',
    }),
    event({ resourceType: 'job', billingDimension: 'job_image_storage_gbs', resourceName: 'box', cost: '0.3' }),
    event({ resourceType: 'mcp_server', billingDimension: 'mcp_server_compute_runtime_gbs', cost: '0.7' }),
    event({ resourceType: 'volume', billingDimension: 'volume_storage_gbs', resourceName: '東京/1', cost: '0.00001' }),
    event({ resourceType: 'custom_domain', billingDimension: 'custom_domain_active_time_hours', cost: '20' }),
  ]);
  const wide = Array.from({ length: 250 }, (_, n) => {
    const at = `2025-10-${String((n % 31) + 1).padStart(2, '0')}T01:00:00Z`;
    return event({ accountId: 'wide', resourceName: `box-${n}`, at, cost: '0.1' });
  });
  wideKey = await api.key('wide');
  await api.seed([
    ...wide,
    event({ ...corrected, usage: '499.5', cost: '499.5', revision: 1 }),
    event({ ...voided, usage: '70', cost: '70', revision: 1, voided: true }),
  ]);
});
afterAll(() => api.stop());

async function exported(args: readonly string[], own: Record<string, string> = env): Promise<DataSet> {
  const { code, stdout, stderr } = await runCommand(args, { env: own });
  if (code !== 0) throw new Error(stderr);
  return parseCsv(stdout);
}

function clientOf(key: string): MeterlineClient {
  return new MeterlineClient({ baseUrl: api.url, credential: key });
}

it('the rules of FOCUS have its 21 mandatory columns', () => {
  expect(SPECIFICATION.filter(({ level }) => level === 'Mandatory')).toHaveLength(21);
});

it('the rules of FOCUS find what is wrong', async () => {
  const { columns, rows } = await exported(MONTH);
  const problemsWith = (changes: DataSet['rows'][number]) =>
    faultsOf({ columns, rows: [{ ...rows[0], ...changes }] }).join('; ');
  expect(faultsOf({ columns: columns.slice(1), rows })).toContain('BilledCost (Mandatory) is missing');
  expect(problemsWith({ ChargeCategory: 'usage' })).toContain('not allowed: usage');
  expect(problemsWith({ PricingQuantity: null })).toContain('usage without PricingQuantity');
});

it.each(['daily', 'hourly'])(
  'a month as CSV, %s, keeps the rules and adds up to /metrics, to the last digit',
  async (resolution) => {
    const data = await exported([...MONTH, '--resolution', resolution, '--provider', 'Acme Cloud']);
    expect(faultsOf(data)).toEqual([]);
    const client = clientOf(env.METERLINE_API_KEY ?? '');
    const { summary, data: groups } = await client.metrics('acme', { ...OCTOBER, groupBy: ['billing_dimension'] });
    expect(summary.totalCost).toBe('12345678901235094.973467939013');
    for (const cost of ['BilledCost', 'EffectiveCost', 'ListCost', 'ContractedCost']) {
      expect(sumOf(data.rows, cost)).toBe(summary.totalCost);
    }
    expect(sumOf(data.rows, 'ConsumedQuantity')).toBe(summary.totalUsage);
    for (const { billingDimension, summary: group } of groups) {
      const rows = data.rows.filter(({ SkuId }) => SkuId === billingDimension);
      expect([sumOf(rows, 'BilledCost'), sumOf(rows, 'PricingQuantity')]).toEqual([group.cost, group.usage]);
    }
  },
);

it('a month exported by an operator has the workspaces of an account that never had a key', async () => {
  const at = '2025-10-02T00:00:00Z';
  await api.seed(
    ['prod', 'dev'].map((workspace) => event({ accountId: 'keyless', workspace, resourceName: 'bot', at })),
  );
  const own = { ...env, METERLINE_API_KEY: await api.key(undefined, 'operator') };
  const { rows } = await exported(['export', 'focus', '--account', 'keyless', '--month', '2025-10'], own);
  expect(rows.map(({ SubAccountId }) => SubAccountId).toSorted()).toEqual(['dev', 'prod']);
});

it('a month as CSV has a row for each resource, dimension and day with usage, also if free, and keeps every name', async () => {
  const { rows } = await exported(MONTH);
  const names = rows.map(({ ResourceName }) => ResourceName);
  expect(names).toEqual(expect.arrayContaining([ODD, '東京/1']));
  const box = rows.filter(
    ({ ResourceName, SubAccountId, SkuId }) =>
      ResourceName === 'box' && SubAccountId === 'prod' && SkuId === 'sandbox_compute_runtime_gbs',
  );
  expect(box.map((row) => [row.ChargePeriodStart, row.ChargePeriodEnd, row.ConsumedQuantity, row.BilledCost])).toEqual([
    ['2025-10-01T00:00:00Z', '2025-10-02T00:00:00Z', '1000000000000000.299999999', '12345678901234574.323457939013'],
    ['2025-10-03T00:00:00Z', '2025-10-04T00:00:00Z', '499.5', '499.5'],
    ['2025-10-05T00:00:00Z', '2025-10-06T00:00:00Z', '3', '0'],
  ]);
  // What is the same in every row is told by the unit test of the columns.
  expect(rows.filter(({ SubAccountId }) => SubAccountId === 'dev, "too"')).toMatchObject([
    {
      ...{ BillingAccountName: NAME, BillingPeriodStart: OCTOBER.startTime, BillingPeriodEnd: OCTOBER.endTime },
      ...{ ChargePeriodStart: '2025-10-31T00:00:00Z', ChargePeriodEnd: OCTOBER.endTime },
      ChargeDescription: 'Compute Runtime of sandbox box in dev, "too"',
      ...{ BilledCost: '0.1', ConsumedQuantity: '1', ConsumedUnit: 'GB-Seconds', ProviderName: 'Meterline' },
      ...{ ResourceId: 'acme/dev%2C%20%22too%22/sandbox/box', ResourceName: 'box', ResourceType: 'Sandbox' },
      ...{ ServiceCategory: 'Compute', ServiceName: 'Sandboxes', ServiceSubcategory: 'Containers' },
      ...{ SkuId: 'sandbox_compute_runtime_gbs', SkuMeter: 'Compute Runtime' },
    },
  ]);
});

it('a month as CSV of a member has no workspaces and the same sum', async () => {
  const own = { ...env, METERLINE_API_KEY: await api.key('acme', 'member') };
  const data = await exported(MONTH, own);
  expect(faultsOf(data)).toEqual([]);
  expect(new Set(data.rows.map(({ SubAccountId }) => SubAccountId))).toEqual(new Set([null]));
  expect(sumOf(data.rows, 'BilledCost')).toBe(sumOf((await exported(MONTH)).rows, 'BilledCost'));
});

it('a month as CSV without usage has its heading alone', async () => {
  const data = await exported(['export', 'focus', '--account', 'acme', '--month', '2024-02']);
  expect([faultsOf(data), data.rows]).toEqual([[], []]);
});

it('a month as Parquet has the same rows, with decimals and times that ClickHouse reads as such', async () => {
  const file = folder('acme.parquet');
  const { code, stderr } = await runCommand([...MONTH, '--format', 'parquet', '--file', file], { env });
  expect([code, stderr]).toEqual([
    0,
    expect.stringContaining('The rows add up to $12,345,678,901,235,094.973467939013.'),
  ]);
  const { columns, rows } = await exported(MONTH);
  const { warehouse } = api.dependencies;
  const typeOf = (name: string) => {
    const type = SPECIFICATION.find((column) => column.name === name)?.type;
    if (type === 'Decimal') return `Decimal(38, ${name.endsWith('Quantity') ? 9 : 12})`;
    return type === 'Date/Time' ? "DateTime64(3, 'UTC')" : 'Nullable(String)';
  };
  const schema = columns.map((name) => `${name} ${typeOf(name)}`).join(', ');
  const bytes = (await readFile(file)).toString('base64');
  await execute(warehouse, `CREATE TABLE focus (${schema}) ENGINE = Memory`);
  await execute(
    warehouse,
    `INSERT INTO focus SELECT * FROM format(Parquet, '${schema.replaceAll("'", "''")}', base64Decode({bytes: String}))`,
    { bytes },
  );
  const read = await select(
    warehouse,
    `SELECT ${columns.map((name) => (typeOf(name).startsWith('DateTime') ? `formatDateTime(${name}, '%FT%TZ') AS ${name}` : name)).join(', ')} FROM focus`,
  );
  expect(read).toEqual(rows);
});

it.each([
  [['--file', 'no/such/folder.csv'], 1, 'cannot write no/such/folder.csv: no such file or directory'],
  [['--file', 'x'.repeat(300)], 1, 'name too long'],
  [['--file', '.'], 2, 'cannot write .: it is a directory; name a file in it'],
  [['--file', '/dev/null'], 2, 'cannot write /dev/null: it is not a regular file; redirect standard output instead'],
  [['--month', 'October'], 2, 'It must be a month from 1970-01 to 2100-12, such as 2026-11.'],
  [['--provider', ''], 2, 'It must be 1 to 256 characters without control characters.'],
])('an export with %j fails with how to fix it', async (flags, code, message) => {
  const run = await runCommand([...MONTH, ...flags], { env });
  expect(run).toEqual({ code, stdout: '', stderr: expect.stringContaining(message) });
});

const WIDE = ['export', 'focus', '--account', 'wide', '--month', '2025-10'];

/** Through a proxy that answers the first requests for a second page itself. */
async function runWith(responses: readonly { status: number; body: unknown }[], args: readonly string[]) {
  const left = [...responses];
  const interfere = async (path: string) => (path.includes('cursor=') ? left.shift() : undefined);
  return withApiProxy(api.url, interfere, (url) =>
    runCommand(args, { env: { METERLINE_API_URL: url, METERLINE_API_KEY: wideKey } }),
  );
}
const refusal = (code: number, error: string) => ({
  status: code,
  body: { code, error, message: 'Not this time.', requestId: 'r-1' },
});
it('an export that fails half way changes no file and prints nothing to standard output', async () => {
  const file = folder('wide.csv');
  await writeFile(file, 'of last time');
  const before = await readdir(folder());
  const responses = [refusal(400, 'invalid_cursor')];
  const [toFile, toStdout] = [await runWith(responses, [...WIDE, '--file', file]), await runWith(responses, WIDE)];
  expect([toFile.code, toStdout.code, toStdout.stdout]).toEqual([2, 2, '']);
  expect(toFile.stderr).toContain('Not this time. (400 invalid_cursor');
  expect(await readFile(file, 'utf8')).toBe('of last time');
  expect(await readdir(folder())).toEqual(before);
});

it('an export that is interrupted writes nothing, and reports this', async () => {
  const env = { METERLINE_API_URL: api.url, METERLINE_API_KEY: wideKey };
  const file = folder('stopped.csv');
  const run = await runCommand([...WIDE, '--debug', '--file', file], { env, interruptAt: 'cursor=' });
  expect(run).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining('interrupted; nothing was written'),
  });
  expect((await readdir(folder())).filter((name) => name.startsWith('stopped'))).toEqual([]);
});

it('an export whose figures change while they are read begins again, and writes every row once', async () => {
  const [file, link] = [folder('shared.csv'), folder('linked.csv')];
  await writeFile(file, 'of last month');
  await chmod(file, 0o664);
  await symlink(file, link);
  const { code } = await runWith([refusal(400, 'cursor_expired')], [...WIDE, '--file', link]);
  expect([(await lstat(link)).isSymbolicLink(), (await stat(file)).mode & 0o777]).toEqual([true, 0o664]);
  const data = parseCsv(await readFile(file, 'utf8'));
  expect([code, faultsOf(data), data.rows.length, sumOf(data.rows, 'BilledCost')]).toEqual([0, [], 250, '25']);
  const often = await runWith(
    Array.from({ length: 3 }, () => refusal(400, 'cursor_expired')),
    WIDE,
  );
  expect(often).toMatchObject({ code: 1, stdout: '' });
  expect(often.stderr).toContain('2025-10 kept changing while it was read; try again when fewer events arrive');
});

it('an hourly export notices that a week changed after it was read', async () => {
  let isLate = false;
  const interfere = async (path: string) => {
    if (path.includes('resolution=hourly') && path.includes('startTime=2025-10-08') && !isLate) {
      isLate = true;
      await api.seed([event({ accountId: 'late', at: '2025-10-02T00:00:00Z', cost: '5' })]);
    }
    return undefined;
  };
  await api.seed([event({ accountId: 'late', at: '2025-10-20T00:00:00Z', cost: '7' })]);
  const key = await api.key('late');
  const args = ['export', 'focus', '--month', '2025-10', '--resolution', 'hourly'];
  const { code, stdout } = await withApiProxy(api.url, interfere, (url) =>
    runCommand(args, { env: { METERLINE_API_URL: url, METERLINE_API_KEY: key } }),
  );
  const data = parseCsv(stdout);
  expect([code, isLate, faultsOf(data), sumOf(data.rows, 'BilledCost')]).toEqual([0, true, [], '12']);
});

it('an hourly export writes the current month, with a new event at each request', async () => {
  const now = jest.spyOn(Date, 'now').mockReturnValue(Date.UTC(2025, 9, 16, 12));
  const busy: typeof fetch = async (input, init) => {
    if (String(input).includes('/metrics')) {
      await api.seed([event({ accountId: 'busy', at: '2025-10-16T11:00:00Z', cost: '1' })]);
    }
    return fetch(input, init);
  };
  try {
    const client = new MeterlineClient({ baseUrl: api.url, credential: await api.key('busy'), fetch: busy });
    const query = { account: 'busy', month: Date.UTC(2025, 9), resolution: 'hourly' } as const;
    const { cost } = await exportFocus(client, query, () => ({ write: () => undefined }));
    // An event came with the request for each of the month's five weeks.
    expect(cost).toBe('5');
  } finally {
    now.mockRestore();
  }
});

it('an export has at most one page in memory', async () => {
  let requested = 0;
  const counting: typeof fetch = (input, init) => {
    if (String(input).includes('/metrics')) requested += 1;
    return fetch(input, init);
  };
  const client = new MeterlineClient({ baseUrl: api.url, credential: await api.key('wide'), fetch: counting });
  const seen: [number, number][] = [];
  const write = async (charges: readonly unknown[]) => {
    await new Promise(setImmediate);
    seen.push([requested, charges.length]);
  };
  const { rows } = await exportFocus(client, { account: 'wide', month: Date.UTC(2025, 9) }, () => ({ write }));
  expect([rows, seen]).toEqual([
    250,
    [
      [1, 100],
      [2, 100],
      [3, 50],
    ],
  ]);
});

it('an export rejects a month that does not begin at a UTC month', async () => {
  const client = new MeterlineClient({ baseUrl: api.url, credential: await api.key('wide') });
  const month = Date.UTC(2025, 9, 1, 4);
  await expect(exportFocus(client, { account: 'wide', month }, () => ({ write: () => undefined }))).rejects.toThrow(
    'month must be the first instant of a UTC month',
  );
});
