/** Credentials of the command line, the errors of the API, `meterline alerts`, and `meterline emit` to a collector. */
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startApi, type TestApi } from '../harness/api.js';
import { type CollectorFixture, event as collected, startCollectorFixture } from '../harness/collector.js';
import { event } from '../harness/events.js';
import { withApiProxy } from '../harness/services.js';
import { json, serve } from '../harness/serving.js';
import { testFolder } from '../harness/test-folder.js';
import { runCommand, runMeterline } from './run-command.js';

const DAY = ['--from', '2025-10-01', '--to', '2025-10-02'];
const NOBODY = 'http://127.0.0.1:9';

let api: TestApi;
let key: string;
/** Without a login: of an admin, and of a member. */
let env: Record<string, string>;
let member: Record<string, string>;
beforeAll(async () => {
  api = await startApi();
  key = await api.key('acme');
  env = { METERLINE_API_URL: api.url, METERLINE_API_KEY: key };
  member = { ...env, METERLINE_API_KEY: await api.key('acme', 'member') };
  await api.seed([event({ cost: '1' })]);
});
afterAll(() => api.stop());

/** Where a login is kept. */
const folder = testFolder('each test');
let own: { XDG_CONFIG_HOME: string };
let file: string;
beforeEach(() => {
  own = { XDG_CONFIG_HOME: folder() };
  file = folder('meterline', 'config.json');
});

const login = (variables = {}, stdin = `${key}\n`, address = api.url) =>
  runCommand(['login', '--api-url', address], { env: { ...own, ...variables }, stdin });

it('login keeps a key that works, in a file for its owner alone; logout forgets it', async () => {
  const kept = await login({}, undefined, `${api.url}/v0/`);
  expect(kept).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('admin of acme') });
  expect(kept.stderr).not.toContain(key);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({ apiUrl: api.url, apiKey: key, account: 'acme' });

  const who = await runCommand(['whoami', '--json'], { env: own });
  const from = { kind: 'login file', source: file };
  expect(JSON.parse(who.stdout)).toMatchObject({ apiUrl: api.url, apiUrlFrom: from, keyFrom: from, account: 'acme' });
  expect(who.stdout).not.toContain(key);
  expect((await runCommand(['resource-types', ...DAY], { env: own })).stdout).toBe('sandbox\n');
  // A key is not sent to an address that it was not given for.
  expect(await runCommand(['accounts', '--api-url', NOBODY], { env: own })).toMatchObject({ code: 2 });

  expect(await runCommand(['logout'], { env: own })).toMatchObject({ code: 0 });
  expect(await runCommand(['accounts', '--api-url', api.url], { env: own })).toMatchObject({ code: 2 });
});

it('a profile is a login of its own, which --profile uses and logs out', async () => {
  await login();
  const memberKey = member['METERLINE_API_KEY'] ?? '';
  const args = ['--profile', 'staging', '--api-url', api.url];
  const saved = await runCommand(['login', ...args], { env: own, stdin: memberKey });
  expect(saved.stderr).toContain('Use it with --profile staging');
  const role = async (flags: readonly string[], variables = {}) =>
    JSON.parse((await runCommand(['whoami', '--json', ...flags], { env: { ...own, ...variables } })).stdout);
  expect(await role([])).toMatchObject({ profile: null, accounts: [{ role: 'admin' }] });
  const ofProfile = { profile: 'staging', accounts: [{ role: 'member' }] };
  expect(await role(['--profile', 'staging'], env)).toMatchObject(ofProfile);
  expect(await role([], { METERLINE_PROFILE: 'staging' })).toMatchObject(ofProfile);

  expect(await runCommand(['logout', '--profile', 'staging'], { env: own })).toMatchObject({ code: 0 });
  expect(await runCommand(['whoami', '--profile', 'staging'], { env: own })).toMatchObject({ code: 2 });
  expect(await role([])).toMatchObject({ accounts: [{ role: 'admin' }] });
});

it('requests go through the proxy of HTTP_PROXY, but not those to hosts of NO_PROXY and to this machine', async () => {
  const proxy = await serve(json(200, { id: 'acme' }));
  const whoami = (variables: Record<string, string>) =>
    runMeterline(['whoami'], { env: { ...env, HTTP_PROXY: proxy.url, ...variables } });
  const METERLINE_API_URL = 'http://meterline.test/costs';
  await whoami({ METERLINE_API_URL });
  expect(proxy.requests.map(({ url }) => url)).toEqual([
    expect.stringMatching(/^http:\/\/meterline\.test\/costs\/v0\/accounts\?/),
  ]);
  expect(await whoami({ METERLINE_API_URL, NO_PROXY: 'other.test,meterline.test' })).toMatchObject({ code: 4 });
  expect(await whoami({ METERLINE_API_URL, NO_PROXY: '*' })).toMatchObject({ code: 4 });
  expect(await whoami({})).toMatchObject({ code: 0 });
  const stderr = expect.stringMatching(/^meterline: HTTP_PROXY and HTTPS_PROXY must be addresses such as http/);
  expect(await whoami({ HTTP_PROXY: 'proxy:3128' })).toMatchObject({ code: 2, stderr });
  expect(proxy.requests).toHaveLength(1);
});

it('CSV, JSON and FOCUS need no folder for temp files while they are small', async () => {
  const variables = { env: { ...env, TMPDIR: '/nonexistent' } };
  for (const args of [
    ['metrics', ...DAY, '--csv'],
    ['metrics', ...DAY, '--json'],
    ['export', 'focus', '--month', '2025-10'],
  ])
    expect([args, await runMeterline(args, variables)]).toMatchObject([args, { code: 0 }]);
});

it('a login goes before a local stack that runs here, which whoami names too', async () => {
  const dataDir = folder('stack');
  await mkdir(dataDir);
  const addresses = { apiUrl: NOBODY, redisUrl: 'redis://127.0.0.1:9', clickhouseUrl: NOBODY };
  const server = { clickhouseUser: 'u', clickhousePassword: '', clickhouseDatabase: 'd' };
  const keys = { account: 'demo', adminKey: 'a', memberKey: 'm' };
  await writeFile(folder('stack', 'local.json'), JSON.stringify({ ...addresses, ...server, ...keys }));
  await login();
  const variables = { ...own, METERLINE_DATA_DIR: dataDir, METERLINE_ACCOUNT: 'acme' };
  const { stdout, stderr } = await runCommand(['whoami'], { env: variables });
  expect(stdout.split('\n').slice(0, 3)).toEqual([
    `API      ${api.url} (login file: ${file})`,
    `Key      ${key.slice(0, 10)}… (login file: ${file})`,
    'Account  acme (environment: METERLINE_ACCOUNT)',
  ]);
  expect(stderr).toBe(`A local stack is running but not used; use --api-url ${NOBODY} for it.\n`);
});

it.each<[string, Record<string, string>, number, RegExp, RegExp]>([
  ['without a key', { METERLINE_API_KEY: '' }, 2, /^Key +none$/m, /^meterline: there is no API key for /],
  [
    'with an API that is away',
    { METERLINE_API_URL: NOBODY },
    4,
    /^API +http:\/\/127\.0\.0\.1:9 \(env/m,
    /127\.0\.0\.1:9.* cannot be reached/,
  ],
  [
    'with a key that the API refuses',
    { METERLINE_API_KEY: 'mlk_nope' },
    3,
    /^Key +mlk_nope… \(env/m,
    /401 unauthorized/,
  ],
])('whoami shows the settings %s, and then fails', async (_what, variables, code, shown, stderr) => {
  const as = { ...env, METERLINE_ACCOUNT: 'acme', ...variables };
  const { stdout, ...ended } = await runCommand(['whoami'], { env: as });
  expect(ended).toEqual({ code, stderr: expect.stringMatching(stderr) });
  expect(stdout).toMatch(shown);
  expect(stdout).toMatch(/^Account +acme \(environment: METERLINE_ACCOUNT\)\n$/m);
  const json = await runCommand(['whoami', '--json'], { env: as });
  expect(json.code).toBe(code);
  expect(JSON.parse(json.stdout)).toMatchObject({ account: 'acme', accounts: null });
});

it('login replaces a file that it cannot have written, of which others say how to get rid', async () => {
  await login();
  await writeFile(file, '{');
  const stderr = expect.stringContaining('is not a valid login file; log in again with --api-url, or run');
  expect(await runCommand(['whoami'], { env: own })).toMatchObject({ code: 2, stderr });
  expect(await login()).toMatchObject({ code: 0 });
});

it('login and whoami name the role of a key of all accounts once, with the number of accounts', async () => {
  const operator = await api.key(undefined, 'operator');
  const role = expect.stringMatching(/operator of all accounts \(\d+\)[.\n]/);
  expect(await login({}, operator)).toMatchObject({ code: 0, stderr: role });
  const { stdout } = await runCommand(['whoami'], { env: own });
  expect(stdout).toEqual(role);
  expect(stdout).not.toContain('operator of acme');
  const stderr = expect.stringMatching(
    /the key has no access to account nobody; it is operator of all accounts \(\d+\)\n$/,
  );
  const unknown = ['login', '--api-url', api.url, '--account', 'nobody'];
  expect(await runCommand(unknown, { env: own, stdin: operator })).toMatchObject({ code: 2, stdout: '', stderr });
});

it('whoami names the only account of the key as the account that commands use', async () => {
  const { stdout } = await runCommand(['whoami'], { env: member });
  expect(stdout).toMatch(/^Account +acme \(the key's only account\)\n +member of acme\n$/m);
  const json = await runCommand(['whoami', '--json'], { env: member });
  expect(JSON.parse(json.stdout)).toMatchObject({ account: null, accountFrom: null });
});

it('login says which setting overrides it', async () => {
  const comesBefore = expect.stringContaining(`${NOBODY} (from METERLINE_API_URL); use --api-url`);
  expect(await login({ METERLINE_API_URL: NOBODY })).toMatchObject({ code: 0, stderr: comesBefore });
  const keyToo = expect.stringContaining('METERLINE_API_KEY is set and overrides the login');
  expect(await login({ METERLINE_API_KEY: 'mlk_nope' })).toMatchObject({ code: 0, stderr: keyToo });
});

it.each([
  ['a key that the API refuses', 'mlk_nope\n', 3],
  ['no key', '', 2],
])('login keeps nothing of %s', async (_name, stdin, code) => {
  expect((await login({}, stdin)).code).toBe(code);
  await expect(stat(file)).rejects.toMatchObject({ code: 'ENOENT' });
});

it.each<[string, string, Record<string, string>, number, RegExp]>([
  [
    'an unknown key',
    'metrics',
    { METERLINE_API_KEY: 'mlk_nope' },
    3,
    /\(401 unauthorized, request [0-9a-f-]{36}\)\nThe key is from METERLINE_API_KEY. It overrides a login: replace it, or unset it.\n$/,
  ],
  [
    'another account',
    'metrics --account other',
    {},
    3,
    /^meterline: Access denied \(403 forbidden, request .*\)\nThe account does not exist, .* "meterline accounts" lists the accounts/,
  ],
  [
    'a window over the cap',
    'metrics --since 8d --resolution hourly',
    {},
    2,
    /at most 7 days.* \(400 invalid_parameter, /,
  ],
  ['nobody there', 'accounts', { METERLINE_API_URL: NOBODY }, 4, /^meterline: .*127\.0\.0\.1:9/],
  [
    'no key',
    'metrics',
    { METERLINE_API_KEY: '' },
    2,
    /^meterline: there is no API key for http.* \(from METERLINE_API_URL\)/,
  ],
])('%s is reported on stderr, with an exit code of its own', async (_name, line, variables, code, message) => {
  const run = await runCommand(line.split(' '), { env: { ...env, ...variables } });
  expect(run).toMatchObject({ code, stdout: '', stderr: expect.stringMatching(message) });
});

it('a member who groups by workspace learns why not', async () => {
  const run = await runCommand(['metrics', ...DAY, '--group-by', 'workspace'], { env: member });
  const why = expect.stringContaining('Only an admin of the account may do this');
  expect(run).toMatchObject({ code: 3, stderr: why });
});

describe('meterline alerts', () => {
  beforeAll(() => {
    // Redis forgets deliveries by its own clock.
    api.clock.now = new Date();
  });

  const run = (line: readonly string[], as = env, stdin = '') => runCommand(['alerts', ...line], { env: as, stdin });
  const CREATE = ['create', '--name', 'Monthly spend', '--period', 'month', '--amount', '100'];
  const URL = ['--url', 'https://example.com/hooks'];

  async function create(...flags: string[]): Promise<{ id: string; secret: string }> {
    return JSON.parse((await run([...CREATE, ...URL, ...flags, '--json'])).stdout);
  }

  it('an alert is created with its secret, shown without it, and changed', async () => {
    const thresholds = ['--threshold', '100', '--threshold', '50'];
    const created = await run([...CREATE, ...URL, '--workspace', 'production', ...thresholds]);
    const [, id = ''] = /^id +(alr_[0-9a-f]{24})$/m.exec(created.stdout) ?? [];
    expect(created).toMatchObject({ code: 0, stderr: '' });
    expect(created.stdout).toMatch(/^secret +whsec_\S+\n\nSave the secret now: it is not shown again\.$/m);

    const { stdout } = await run(['show', id]);
    expect(stdout).toContain(
      'subject     cost per month, workspace=production\namount      $100.00\nthresholds  50%, 100%',
    );
    expect(stdout).not.toContain('whsec_');

    const changed = await run(['update', id, '--name', 'Spend', '--rotate-secret']);
    expect(changed.stdout).toMatch(/^name +Spend\n(.*\n)+secret +whsec_/m);
    expect((await run(['list'])).stdout).toMatch(
      /^ALERT +NAME +SUBJECT +AMOUNT +THRESHOLDS +FIRED\nalr_\w+ +Spend +cost per month, workspace=production +\$100\.00 +50%, 100% +-$/m,
    );
    expect((await run(['list'], member)).stdout).toBe('No alerts.\n');
    expect((await run(['update', id, '--resource-type', 'agent'])).stdout).toContain(
      'subject     cost per month, workspace=production, resourceType=agent\n',
    );
    await run(['delete', id, '--yes']);
  });

  it('the list of alerts has forecast thresholds, and those that fired', async () => {
    const { id } = await create('--threshold', '80', '--forecast', '90');
    const alert = JSON.parse((await run(['show', id, '--json'])).stdout);
    const at = { firedAt: '2025-10-20T00:00:00Z', value: 80 };
    const fired = {
      ...alert,
      fired: [{ ...at, threshold: 80 }],
      forecastFired: [{ ...at, threshold: 90, forecast: 90 }],
    };
    const list = async (path: string) =>
      path.includes('/alerts')
        ? { status: 200, body: { data: [alert, fired], meta: { total: 2, hasMore: false, nextCursor: '' } } }
        : undefined;
    const { stdout } = await withApiProxy(api.url, list, (url) => run(['list'], { ...env, METERLINE_API_URL: url }));
    expect(stdout).toMatch(/ 80%, forecast 90% +-\n.* 80%, forecast 90% +80%, forecast 90%\n$/);
    await run(['delete', id, '--yes']);
  });

  it('an alert by e-mail with a forecast is created, changed and tested, and so is a message to Slack, without its secret', async () => {
    const [a, b] = ['a@example.com', 'b@example.com'];
    const mail = JSON.parse((await run([...CREATE, '--to', a, '--to', b, '--forecast', '100', '--json'])).stdout);
    expect(mail).toMatchObject({ to: [a, b], thresholds: [50, 80, 100], forecast: [100] });
    expect((await run(['show', mail.id])).stdout).toMatch(/^forecast +100%\ntarget +a@example.com, b@example.com\n/m);
    await run(['test', mail.id]);
    const listed = (await run(['deliveries', mail.id])).stdout;
    for (const to of [a, b]) expect(listed).toMatch(new RegExp(` test to ${to} +pending +0$`, 'm'));
    expect((await run(['update', mail.id, '--to', b])).stdout).toMatch(/^target +b@example.com$/m);

    const url = 'https://hooks.example.com/services/T0';
    const slack = await run([...CREATE, '--format', 'slack', '--url', url]);
    expect(slack.stdout).toMatch(/^target +https:\/\/hooks.example.com \(slack\)$/m);
    expect(slack.stdout).not.toMatch(/secret|services/);
    for (const { id } of JSON.parse((await run(['list', '--json'])).stdout)) await run(['delete', id, '--yes']);
  });

  it('an alert on usage has its amount in the unit of the dimension', async () => {
    const usage = ['--measure', 'usage', '--billing-dimension', 'agent_async_requests_count'];
    const { id } = await create(...usage);
    expect((await run(['show', id], member)).stdout).toContain('amount      100 events\nthresholds  50%, 80%, 100%\n');
    await run(['delete', id, '--yes']);
  });

  it('a test is sent, listed, and sent again', async () => {
    const { id } = await create();
    const test = JSON.parse((await run(['test', id, '--json'])).stdout);
    expect(test).toMatchObject([{ state: 'pending', attempts: 0 }]);
    const listed = (await run(['deliveries', id])).stdout;
    expect(listed).toMatch(/^DELIVERY +CREATED +FOR +STATE +ATTEMPTS +LAST OUTCOME\ndlv_\S+ +\S+Z +test +pending +0$/m);
    const again = await run(['deliveries', id, '--redeliver', test[0].id]);
    expect(again).toMatchObject({ code: 0, stdout: listed });
    expect(await run(['deliveries', id, '--redeliver', 'dlv_none'])).toMatchObject({ code: 1, stdout: '' });
  });

  it('an alert is deleted after a typed "yes" alone', async () => {
    const { id } = await create();
    const refused = { code: 1, stderr: expect.stringContaining('nothing was changed') };
    expect(await run(['delete', id], env, 'no\n')).toMatchObject(refused);
    const stderr = 'Delete the alert Monthly spend permanently? Type yes: ';
    expect(await run(['delete', id], env, 'yes\n')).toEqual({ code: 0, stdout: `Deleted ${id}.\n`, stderr });
    expect(await run(['show', id])).toMatchObject({ code: 1, stderr: expect.stringContaining('(404 ') });
  });

  it('an alert by e-mail without a mail server is rejected with the name of the flag', async () => {
    const noMail = await startApi({ sendsMail: false }, 'away');
    const as = { METERLINE_API_URL: noMail.url, METERLINE_API_KEY: await noMail.key('acme') };
    const stderr = expect.stringMatching(/^meterline: --to: to needs a mail server/);
    const created = await run([...CREATE, '--to', 'a@example.com'], as);
    await noMail.stop();
    expect(created).toMatchObject({ code: 2, stdout: '', stderr });
  });

  it.each([
    [
      'an address that is not outside',
      () => run([...CREATE.slice(0, -1), '-1', '--url', 'https://127.0.0.1/']),
      2,
      'meterline: --amount, --url: amount ',
    ],
    [
      'a dimension that is missing',
      () => run([...CREATE, ...URL, '--measure', 'usage']),
      2,
      'meterline: --billing-dimension: filters.billingDimension must have exactly one value',
    ],
    ['an alert without a target', () => run(CREATE), 2, 'an alert needs url, or to for e-mail'],
    ['a filter that excludes', () => run([...CREATE, ...URL, '--filter', 'workspace!=main']), 2, 'filters must be'],
    ['a member', () => run([...CREATE, ...URL], member), 3, '(403 forbidden'],
  ])('%s is refused by the API, and the command says why', async (_what, refused, code, reason) => {
    expect(await refused()).toMatchObject({ code, stdout: '', stderr: expect.stringContaining(reason) });
  });
});

describe('meterline emit', () => {
  let fixture: CollectorFixture;
  let account: string;
  let ofEmitter: Record<string, string>;
  beforeAll(async () => {
    fixture = await startCollectorFixture();
    const { key, ...other } = await fixture.account();
    account = other.account;
    ofEmitter = { COLLECTOR_URL: `${fixture.service.url}/v0/`, METERLINE_EMITTER_KEY: key };
  });
  afterAll(() => fixture.close());

  const text = (events: readonly object[]) => events.map((one) => JSON.stringify(one)).join('\n');
  const EVENTS = text([collected(), collected({ eventId: 'order 1' }), collected({ usage: -1 })]);
  const emit = (args: readonly string[], stdin: string) =>
    runCommand(['emit', '-', ...args], { env: ofEmitter, stdin });

  it('emit sends the lines of a file, and reports those that the collector rejects', async () => {
    const run = await emit(['--account', account, '--batch', '2'], `nope\n${EVENTS}\n${text([collected()])}`);
    expect(run).toMatchObject({ code: 5, stdout: 'Sent 3 events, up to line 5.\n' });
    expect(run.stderr).toMatch(
      /^standard input:1: not JSON: .*\nstandard input:4: invalid_usage: .*\nmeterline: 2 lines rejected\n$/,
    );
    expect((await fixture.takeJobs()).flat()).toHaveLength(3);
  });

  it('emit goes on after a request of which the collector rejects every line', async () => {
    const run = await emit(['--account', account, '--batch', '1'], EVENTS.split('\n').toReversed().join('\n'));
    expect(run).toMatchObject({ code: 5, stdout: 'Sent 2 events, up to line 3.\n' });
    expect((await fixture.takeJobs()).flat()).toHaveLength(2);
  });

  it('emit --dry-run lets the collector check the lines, and stores nothing', async () => {
    const run = await emit(['--account', account, '--dry-run', '--json'], EVENTS);
    expect([run.code, JSON.parse(run.stdout)]).toMatchObject([5, { validEvents: 2, badLines: 1 }]);
    expect(await fixture.takeJobs()).toEqual([]);
  });

  it('emit reports an event of an account that the key may not send for', async () => {
    const run = await emit([], text([collected(), collected({ accountId: 'another' })]));
    const reason =
      /^standard input:2: account_not_allowed: accountId must be "[^"]+", the account of this API key .*\(got "another"\)$/m;
    expect(run).toMatchObject({ code: 5, stderr: expect.stringMatching(reason) });
    expect((await fixture.takeJobs()).flat()).toHaveLength(1);
  });
});
