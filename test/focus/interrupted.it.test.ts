/** What `meterline export focus` leaves behind when something happens on its way. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { MeterlineClient } from '@meterline/client';
import { exportFocus } from '@meterline/client/focus';
import { runCommand } from '../cli/run-command.js';
import { startApi, type TestApi } from '../harness/api.js';
import { withApiProxy } from '../harness/api-proxy.js';
import { event } from '../harness/events.js';
import { faultsOf, parseCsv, sumOf } from './check.js';

let api: TestApi;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'meterline-focus-'));
  api = await startApi();
  await api.seed(
    Array.from({ length: 250 }, (_, n) => {
      const at = `2025-10-${String((n % 31) + 1).padStart(2, '0')}T01:00:00Z`;
      return event({ accountId: 'wide', resourceName: `box-${n}`, at, cost: '0.1' });
    }),
  );
});
afterAll(async () => {
  await api.stop();
  await rm(folder, { recursive: true });
});

describe('an export that fails', () => {
  const WIDE = ['export', 'focus', '--account', 'wide', '--month', '2025-10'];

  /** Through a proxy that answers the first requests for a second page itself. */
  async function runWith(answers: readonly { status: number; body: unknown }[], args: readonly string[]) {
    const left = [...answers];
    const interfere = async (path: string) => (path.includes('cursor=') ? left.shift() : undefined);
    return withApiProxy(api.url, interfere, (url) =>
      runCommand(args, { env: { METERLINE_API_URL: url, METERLINE_API_KEY: wideKey } }),
    );
  }
  const refusal = (code: number, error: string) => ({
    status: code,
    body: { code, error, message: 'Not this time.', requestId: 'r-1' },
  });
  let wideKey: string;
  beforeAll(async () => {
    wideKey = await api.key('wide');
  });

  it('an export that fails in the middle leaves the file as it was, nothing beside it, and standard output empty', async () => {
    const file = join(folder, 'wide.csv');
    await writeFile(file, 'of last time');
    const before = await readdir(folder);
    const answers = [refusal(400, 'invalid_cursor')];
    const [toFile, toStdout] = [await runWith(answers, [...WIDE, '--output', file]), await runWith(answers, WIDE)];
    expect([toFile.code, toStdout.code, toStdout.stdout]).toEqual([2, 2, '']);
    expect(toFile.stderr).toContain('Not this time. (400 invalid_cursor');
    expect(await readFile(file, 'utf8')).toBe('of last time');
    expect(await readdir(folder)).toEqual(before);
  });

  it('an export that is ended by Ctrl-C leaves nothing, and says so', async () => {
    const env = { METERLINE_API_URL: api.url, METERLINE_API_KEY: wideKey };
    const file = join(folder, 'stopped.csv');
    const run = await runCommand([...WIDE, '--debug', '--output', file], { env, interruptAt: 'cursor=' });
    expect(run).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('interrupted; nothing was written'),
    });
    expect((await readdir(folder)).filter((name) => name.startsWith('stopped'))).toEqual([]);
  });

  it('an export whose figures change while it reads begins again, and writes every row once', async () => {
    const file = join(folder, 'wide.csv');
    const { code } = await runWith([refusal(400, 'cursor_expired')], [...WIDE, '--output', file]);
    const data = parseCsv(await readFile(file, 'utf8'));
    expect([code, faultsOf(data), data.rows.length, sumOf(data.rows, 'BilledCost')]).toEqual([0, [], 250, '25']);
    const often = await runWith(
      Array.from({ length: 3 }, () => refusal(400, 'cursor_expired')),
      WIDE,
    );
    expect(often).toMatchObject({ code: 1, stdout: '' });
    expect(often.stderr).toContain('2025-10 kept changing while it was read; try again when fewer events arrive');
  });

  it('an export by the hour notices that a week changed after it was read', async () => {
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
});

it('an export by the hour writes a month whose third week is under way, and gets an event with every request', async () => {
  const now = jest.spyOn(Date, 'now').mockReturnValue(Date.UTC(2025, 9, 16, 12));
  const busy: typeof fetch = async (input, init) => {
    if (String(input).includes('/metrics')) {
      await api.seed([event({ accountId: 'busy', at: '2025-10-16T11:00:00Z', cost: '1' })]);
    }
    return fetch(input, init);
  };
  try {
    const client = new MeterlineClient({ baseUrl: api.url, credential: await api.key('busy'), fetch: busy });
    const question = { account: 'busy', month: Date.UTC(2025, 9), resolution: 'hourly' } as const;
    const { cost } = await exportFocus(client, question, () => ({ write: () => undefined }));
    // One with the request for each of the month's five weeks.
    expect(cost).toBe('5');
  } finally {
    now.mockRestore();
  }
});

it('an export never has more than a page in memory', async () => {
  let asked = 0;
  const counting: typeof fetch = (input, init) => {
    if (String(input).includes('/metrics')) asked += 1;
    return fetch(input, init);
  };
  const client = new MeterlineClient({ baseUrl: api.url, credential: await api.key('wide'), fetch: counting });
  const seen: [number, number][] = [];
  const write = async (charges: readonly unknown[]) => {
    await new Promise(setImmediate);
    seen.push([asked, charges.length]);
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
