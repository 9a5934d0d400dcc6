/** What `meterline metrics` asks: months, comparisons and filters, again and again, and what it says about it. */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { DEFAULT_PRICE_BOOK } from '@meterline/catalog';
import { oneServer, registerPriceBook } from '@meterline/warehouse';
import { NOW, startApi, type TestApi } from '../harness/api.js';
import { withApiProxy } from '../harness/api-proxy.js';
import { type EventSketch, event } from '../harness/events.js';
import { execute } from '../harness/stack.js';
import { runCommand } from './run-command.js';
import { runMeterline } from './run-meterline.js';

jest.setTimeout(60_000);

let api: TestApi;
let key: string;
let env: Record<string, string>;

beforeAll(async () => {
  api = await startApi();
  key = await api.key('acme');
  env = { METERLINE_API_URL: api.url, METERLINE_API_KEY: key };
  const of = (resourceName: string, at: string, cost: string) =>
    event({ accountId: 'acme', workspace: 'main', resourceName, at, cost });
  await api.seed([
    of('box', '2025-10-01T10:00:00Z', '30'),
    of('box', '2025-10-31T23:59:59.999Z', '15'),
    of('disk', '2025-10-02T00:00:00Z', '5'),
    of('box', '2025-09-30T00:00:00Z', '36'),
    of('tape', '2025-09-01T00:00:00Z', '4'),
    of('box', '2025-09-26T00:00:00Z', '0.5'),
  ]);
});
afterAll(() => api.stop());

describe('meterline explain', () => {
  const HOUR = ['explain', '--from', '2025-10-05T10:00:00Z', '--to', '2025-10-05T11:00:00Z'];
  let own: Record<string, string>;
  beforeAll(async () => {
    own = { ...env, METERLINE_API_KEY: await api.key('globex') };
    const { warehouse } = api.dependencies;
    await registerPriceBook(oneServer(warehouse), DEFAULT_PRICE_BOOK);
    await execute(warehouse, 'SYSTEM STOP MERGES usage_events');
    const of = (fields: EventSketch) => api.seed([event({ accountId: 'globex', workspace: 'main', ...fields })]);
    const first = { eventId: '018f0000-0000-7000-8000-000000000001', at: '2025-10-05T10:30:00.250Z' };
    await of({ ...first, usage: '1', cost: '0.0000115' });
    await of({ ...first, usage: '1200', cost: '0.0138', revision: 1 });
    await of({ eventId: '018f0000-0000-7000-8000-000000000002', at: '2025-10-05T10:00:00Z', cost: '2', priceBook: 4 });
  });
  afterAll(() => execute(api.dependencies.warehouse, 'SYSTEM START MERGES usage_events'));

  it('lists the events with their prices, what they replaced, and their sum', async () => {
    expect(await runCommand(HOUR, { env: own })).toEqual({
      code: 0,
      stderr: '',
      stdout: [
        'TIME                     EVENT                                 WORKSPACE  RESOURCE  DIMENSION                         USAGE                PRICE        COST',
        '2025-10-05T10:30:00.25Z  018f0000-0000-7000-8000-000000000001  main       box       sandbox_compute_runtime_gbs  1,200 GB-s  $0.0000115 per GB-s     $0.0138',
        '                           was revision 0                      main       box       sandbox_compute_runtime_gbs      1 GB-s  $0.0000115 per GB-s  $0.0000115',
        '2025-10-05T10:00:00Z     018f0000-0000-7000-8000-000000000002  main       box       sandbox_compute_runtime_gbs      1 GB-s           ? (book 4)       $2.00',
        '2 shown                                                                                                                                              $2.0138',
        '',
      ].join('\n'),
    });
  });

  it('says how to go on, prints the answer as it is, and that there is nothing', async () => {
    const first = await runCommand([...HOUR, '--limit', '1'], { env: own });
    const [, cursor = ''] = /--cursor (\S+)\n$/.exec(first.stderr) ?? [];
    const second = await runCommand([...HOUR, '--limit', '1', '--cursor', cursor, '--json'], { env: own });
    expect(JSON.parse(second.stdout).data.map(({ cost }: { cost: number }) => cost)).toEqual([2]);
    const none = await runCommand([...HOUR, '--filter', 'resourceName=other'], { env: own });
    expect(none).toEqual({ code: 0, stderr: '', stdout: 'No event counts in this window.\n' });
  });

  it('goes on over a page that has looked through its part and found none', async () => {
    const interfere = async (path: string) => {
      if (!path.includes('/events?')) return undefined;
      if (!path.includes('cursor='))
        return { status: 200, body: { data: [], meta: { hasMore: true, nextCursor: 'next' } } };
      const headers = { authorization: `Bearer ${own.METERLINE_API_KEY}` };
      return {
        status: 200,
        body: await (await fetch(`${api.url}${path.replace('cursor=next', '')}`, { headers })).json(),
      };
    };
    const run = await withApiProxy(api.url, interfere, (url) =>
      runCommand(HOUR, { env: { ...own, METERLINE_API_URL: url } }),
    );
    expect(run).toMatchObject({ code: 0, stdout: expect.stringContaining('2 shown') });
  });
});

const MONTH = ['metrics', '--month', '2025-10'];

describe('meterline metrics', () => {
  it('--month is the whole month; --compare shows the month before beside it, and adds up', async () => {
    const { code, stdout, stderr } = await runCommand([...MONTH, '--group-by', 'resource_name', '--compare'], { env });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.split('\n').map((line) => line.replace(/ {2}[·▁▂▃▄▅▆▇█]+$/, ''))).toEqual([
      'acme: 2025-10-01T00:00:00Z to 2025-11-01T00:00:00Z (UTC), daily',
      'Before: 2025-09-01T00:00:00Z to 2025-10-01T00:00:00Z, 1 month earlier',
      '',
      'WORKSPACE       TYPE     RESOURCE    COST   SHARE  BEFORE   CHANGE  TREND',
      'main            sandbox  box       $45.00   90.0%  $36.50   +23.3%',
      'main            sandbox  disk       $5.00   10.0%   $0.00      new',
      '(other groups)                      $0.00    0.0%   $4.00  -100.0%',
      'Total                              $50.00  100.0%  $40.50   +23.5%',
      '',
    ]);
  });

  it('--compare period is whole weeks earlier', async () => {
    const day = ['metrics', '--from', '2025-10-31', '--to', '2025-11-01', '--compare'];
    const { stdout } = await runCommand(day, { env });
    expect(stdout).toContain('Before: 2025-10-24T00:00:00Z to 2025-10-25T00:00:00Z, 1 week earlier');
    const month = await runCommand([...MONTH, '--compare', 'period', '--json'], { env });
    const answers = month.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(answers.map(({ startTime, endTime, summary }) => [startTime, endTime, summary.totalCost])).toEqual([
      ['2025-10-01T00:00:00Z', '2025-11-01T00:00:00Z', 50],
      ['2025-08-27T00:00:00Z', '2025-09-27T00:00:00Z', 4.5],
    ]);
  });

  it('--compare --csv has the columns of the page', async () => {
    expect((await runCommand([...MONTH, '--group-by', 'workspace', '--compare', '--csv'], { env })).stdout).toBe(
      [
        '\uFEFFworkspace,startTime,endTime,costUsd,sharePercent,previousCostUsd,changeUsd,changePercent',
        'main,2025-10-01T00:00:00Z,2025-11-01T00:00:00Z,50,100,40.5,9.5,23.45679',
        '',
      ].join('\r\n'),
    );
  });

  it.each([
    [['--filter', 'resourceName=box'], '45'],
    [['--filter', 'resourceName=box', '--filter', 'resourceName=disk'], '50'],
    [['--filter', 'resourceName=box', '--resource-name', 'disk'], '50'],
    [['--filter', 'resourceType=agent'], '0'],
    [['--filter', 'withoutResourceUuid=true'], '0'],
    [['--filter', 'withoutResourceUuid=false'], '50'],
    [['--filter', 'resourceName!=box'], '5'],
    [['--filter', 'resourceName!=box', '--filter', 'resourceName!=disk'], '0'],
    [['--filter', 'excludeResourceName=box'], '5'],
    [['--filter', 'resourceType!=agent', '--resource-name', 'box', '--filter', 'workspace!=nobody'], '45'],
    [['--filter', 'withoutResourceUuid!=true', '--filter', 'billingDimension!=volume_storage_gbs'], '50'],
    [['--filter', 'billingDimension=sandbox_compute_runtime_gbs', '--workspace', 'main'], '50'],
  ])('filters as the API does with %j', async (filter, cost) => {
    const { stdout } = await runCommand([...MONTH, ...filter, '--json'], { env });
    expect(stdout).toContain(`"summary":{"totalCost":${cost}}`);
  });

  it('--debug says what was asked, when, and its request id, and never the key', async () => {
    const { stdout, stderr } = await runCommand([...MONTH, '--debug', '--json'], { env });
    const [places, account, metrics] = stderr.trimEnd().split('\n');
    expect(places).toMatch(
      /^meterline: API http:\S+ \(environment: METERLINE_API_URL\), key mlk_\w{6}… \(environment: METERLINE_API_KEY\)$/,
    );
    expect(account).toMatch(/^meterline: GET \/v0\/accounts\?\S+: 200 in /);
    const said =
      /^meterline: GET (\S+): 200 in [\d,]+ ms \([\d,]+ ms after the start\), ([\d,]+) bytes, request ([0-9a-f-]{36})$/;
    const [, path, bytes, requestId] = said.exec(metrics ?? '') ?? [];
    expect(path).toBe(
      '/v0/accounts/acme/metrics?resolution=daily&startTime=2025-10-01T00%3A00%3A00Z&endTime=2025-11-01T00%3A00%3A00Z',
    );
    expect(bytes).toBe((Buffer.byteLength(stdout) - 1).toLocaleString('en-US'));
    expect(api.log).toContainEqual(expect.objectContaining({ requestId }));
    expect(stdout + stderr).not.toContain(key);
  });

  it('--watch asks again until Ctrl-C, and prints nothing for terminals where there is none', async () => {
    const twice = /metrics\?[\s\S]*metrics\?.*\n/;
    const run = await runMeterline([...MONTH, '--watch', '1', '--debug'], { env, interruptAt: twice });
    expect(run.code).toBe(0);
    expect(run.stdout.match(/^Total +\$50\.00/gm)?.length).toBeGreaterThanOrEqual(1);
    expect(run.stdout).not.toContain('\u001b');
  });
});

describe('a walk whose answer changes', () => {
  /** Calls `before` before the request of that number with a cursor, from 1, is passed on to the API. */
  async function withProxy<T>(before: (withCursor: number) => Promise<void>, work: (url: string) => Promise<T>) {
    let withCursor = 0;
    const interfere = async (path: string) => {
      if (!path.includes('cursor=')) return undefined;
      withCursor += 1;
      await before(withCursor);
      return undefined;
    };
    return withApiProxy(api.url, interfere, work);
  }

  async function walker(accountId: string) {
    const events = [9, 7, 5, 3, 1].map((cost) => event({ accountId, resourceName: `box-${cost}`, cost: String(cost) }));
    await api.seed(events);
    const walkEnv = { METERLINE_API_KEY: await api.key(accountId), METERLINE_ACCOUNT: accountId };
    const args = ['metrics', '--month', '2025-10', '--group-by', 'resource_name', '--limit', '2', '--all'];
    const change = async () => {
      await api.seed(events.slice(4).map((last) => ({ ...last, revision: 1, cost: 4_000_000_000_000n })));
      await execute(api.dependencies.warehouse, 'OPTIMIZE TABLE usage_events FINAL');
    };
    const run = (before: (withCursor: number) => Promise<void>, ...more: string[]) =>
      withProxy(before, (url) => runCommand([...args, ...more], { env: { ...walkEnv, METERLINE_API_URL: url } }));
    return { change, run };
  }

  it('is read again before anything of it is printed', async () => {
    const { change, run } = await walker('changing');
    const { code, stdout, stderr } = await run(async (withCursor) => {
      if (withCursor === 1) await change();
    }, '--csv');
    expect([code, stderr]).toEqual([
      0,
      'Read 2 groups on 1 page.\nThe answer changed while its pages were read; reading it again.\nRead 5 groups on 3 pages.\n',
    ]);
    const rows = stdout.trimEnd().split('\r\n').slice(1);
    expect(rows.map((row) => row.split(',').at(2))).toEqual(['box-9', 'box-7', 'box-5', 'box-1', 'box-3']);
  });

  it.each([[], ['--json'], ['--csv']])('is read again after pages that came, %j', async (...form) => {
    const { run } = await walker(`late${form}`);
    const { code, stdout } = await run(
      async (withCursor) => {
        api.clock.now = withCursor === 2 ? new Date(NOW.getTime() + 25 * 3_600_000) : NOW;
      },
      ...form,
    );
    // Each group once, in whatever form.
    expect([code, stdout.match(/box-\d/g)?.sort()]).toEqual([0, ['box-1', 'box-3', 'box-5', 'box-7', 'box-9']]);
    api.clock.now = NOW;
  });

  it('that never ends with a page of it says what to do, and prints nothing', async () => {
    const { run } = await walker('never');
    const later = async () => {
      api.clock.now = new Date(api.clock.now.getTime() + 25 * 3_600_000);
    };
    expect(await run(later, '--json')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('The answer changed while its pages were read: run the command again'),
    });
    api.clock.now = NOW;
  });
});
