/** `meterline alerts` against the real API. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { startApi, type TestApi } from '../harness/api.js';
import { runCommand } from './run-command.js';

let api: TestApi;
let env: Record<string, string>;
let member: Record<string, string>;

beforeAll(async () => {
  api = await startApi();
  // Redis forgets deliveries by its own clock.
  api.clock.now = new Date();
  env = { METERLINE_API_URL: api.url, METERLINE_API_KEY: await api.key('acme') };
  member = { ...env, METERLINE_API_KEY: await api.key('acme', 'member') };
});
afterAll(() => api.stop());

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
  expect(created.stdout).toMatch(/^secret +whsec_\S+\n\nKeep the secret now: it is not shown again\.$/m);

  const { stdout } = await run(['show', id]);
  expect(stdout).toContain(
    'of          cost of a month, workspace=production\namount      $100.00\nthresholds  50%, 100%',
  );
  expect(stdout).not.toContain('whsec_');

  const changed = await run(['update', id, '--name', 'Spend', '--rotate-secret']);
  expect(changed.stdout).toMatch(/^name +Spend\n(.*\n)+secret +whsec_/m);
  expect((await run(['list'])).stdout).toMatch(
    /^ALERT +NAME +OF +AMOUNT +THRESHOLDS +FIRED\nalr_\w+ +Spend +cost of a month, workspace=production +\$100\.00 +50%, 100% +-$/m,
  );
  expect((await run(['list'], member)).stdout).toBe('No alerts.\n');
  expect((await run(['update', id, '--resource-type', 'agent'])).stdout).toContain(
    'of          cost of a month, workspace=production, resourceType=agent\n',
  );
  await run(['delete', id, '--yes']);
});

it('an alert on usage has its amount in the unit of the dimension', async () => {
  const usage = ['--measure', 'usage', '--billing-dimension', 'agent_async_requests_count'];
  const { id } = await create(...usage, '--amount', '50000');
  expect((await run(['show', id], member)).stdout).toContain('amount      50,000 events\nthresholds  50%, 80%, 100%\n');
  await run(['delete', id, '--yes']);
});

it('a test is sent, listed, and sent again', async () => {
  const { id } = await create();
  const test = JSON.parse((await run(['test', id, '--json'])).stdout);
  expect(test).toMatchObject([{ state: 'pending', attempts: 0 }]);
  const listed = (await run(['deliveries', id])).stdout;
  expect(listed).toMatch(/^DELIVERY +CREATED +OF +STATE +ATTEMPTS +LAST OUTCOME\ndlv_\S+ +\S+Z +test +pending +0$/m);
  const again = await run(['deliveries', id, '--redeliver', test[0].id]);
  expect(again).toMatchObject({ code: 0, stdout: listed });
  expect(await run(['deliveries', id, '--redeliver', 'dlv_none'])).toMatchObject({ code: 1, stdout: '' });
});

it('an alert is deleted after a typed "yes" alone', async () => {
  const { id } = await create();
  const refused = { code: 1, stderr: expect.stringContaining('nothing was changed') };
  expect(await run(['delete', id], env, 'no\n')).toMatchObject(refused);
  const stderr = 'Delete the alert Monthly spend for good? Type yes: ';
  expect(await run(['delete', id], env, 'yes\n')).toEqual({ code: 0, stdout: `Deleted ${id}.\n`, stderr });
  expect(await run(['show', id])).toMatchObject({ code: 1, stderr: expect.stringContaining('(404 ') });
});

it.each([
  ['an address that is not outside', () => run([...CREATE, '--url', 'https://127.0.0.1/']), 2, 'meterline: url '],
  ['a filter that excludes', () => run([...CREATE, ...URL, '--filter', 'workspace!=main']), 2, 'filters must be'],
  ['a member', () => run([...CREATE, ...URL], member), 3, '(403 forbidden'],
])('%s is refused by the API, and the command says why', async (_what, refused, code, reason) => {
  expect(await refused()).toMatchObject({ code, stdout: '', stderr: expect.stringContaining(reason) });
});
