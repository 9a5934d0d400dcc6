/** What would be published is whole, works where nothing else of Meterline is, and a release that is not is stopped. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK } from '@meterline/catalog';
import { oneServer, registerPriceBook } from '@meterline/warehouse';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { z } from 'zod';
import { TestCollector } from '../emitter/fixture.js';
import { startApi, type TestApi } from '../harness/api.js';
import { type CollectorFixture, event as collected, startCollectorFixture } from '../harness/collector.js';
import { event } from '../harness/events.js';
import { createTestDatabase, databaseVariables, type TestDatabase, testRedisUrl } from '../harness/stack.js';
import { testFolder } from '../harness/test-folder.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

function check(release: Readonly<Record<string, string>>): Promise<{ stdout: string }> {
  const env = { ...process.env, GITHUB_REF_TYPE: '', GITHUB_REPOSITORY: '', npm_config_offline: 'true', ...release };
  return run(process.execPath, ['scripts/check-packages.mjs'], { cwd: ROOT, env });
}

it('the three packages for other people’s programs and the command can be published, and nothing else', async () => {
  const { stdout } = await check({});
  expect(stdout).toMatch(
    /^✓ @meterline\/catalog@\S+, @meterline\/client@\S+, @meterline\/emitter@\S+, meterline@\S+\n$/,
  );
});

it('a release of another version or repository is stopped', async () => {
  const release = { GITHUB_REF_TYPE: 'tag', GITHUB_REF_NAME: 'v99.0.0', GITHUB_REPOSITORY: 'somebody/else' };
  await expect(check(release)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /^✗ the tag is v99\.0\.0, .*\n(✗ (@meterline\/\w+|meterline): repository\.url must end with .*\n){4}$/,
    ),
  });
});

const MODULES = join(ROOT, 'node_modules');
/** What the catalog and the emitter need of others, and the types of `process` and `fetch`: from here, because a test has no registry. */
const FROM_HERE = ['zod', 'date-fns', '@date-fns/utc', 'big.js', '@types/big.js', 'uuid', '@types/node'].map((name) =>
  join(MODULES, name),
);
const packOutput = z.tuple([z.object({ filename: z.string() })]);

interface PackedPackage {
  /** What the compiler finds in the programs, and in the types of all packages: `wrong.ts(3,7): error TS2322: …`. */
  readonly problems: readonly string[];
  /** What the program of its description prints. */
  run(settings: Readonly<Record<string, string>>): Promise<string>;
  remove(): Promise<void>;
}

/**
 * Packs the package and the catalog as `npm pack` does, installs both into an empty folder, without a registry, and compiles there the
 * program that the blocks of its description make, and one that is wrong.
 * @param name its folder in `packages`
 */
async function installPacked(name: string, blocks: number, wrong: string): Promise<PackedPackage> {
  const text = await readFile(join(ROOT, 'packages', name, 'README.md'), 'utf8');
  const shown = [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code);
  expect(shown).toHaveLength(blocks);
  const folder = await mkdtemp(join(tmpdir(), `packed-${name}-`));
  const settings = { HOME: folder, npm_config_offline: 'true', npm_config_cache: join(folder, 'cache') };
  const env = { PATH: process.env['PATH'], ...settings };
  const pack = async (packed: string) => {
    const cwd = join(ROOT, 'packages', packed);
    const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd, env });
    return packOutput.parse(JSON.parse(stdout))[0];
  };
  const [catalog, own] = await Promise.all([pack('catalog'), pack(name)]);
  await writeFile(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n');
  const packages = [`./${catalog.filename}`, `./${own.filename}`, ...FROM_HERE];
  await run('npm', ['install', '--no-audit', '--no-fund', ...packages], { cwd: folder, env });
  await writeFile(join(folder, 'readme.ts'), shown.join(''));
  await writeFile(join(folder, 'wrong.ts'), wrong);
  return {
    problems: await compile(folder, ['readme.ts', 'wrong.ts']),
    run: async (values) => {
      const { stdout } = await run(process.execPath, ['readme.js'], { cwd: folder, env: { ...env, ...values } });
      return stdout;
    },
    remove: () => rm(folder, { recursive: true }),
  };
}

const STRICT = ['--strict', '--noUncheckedIndexedAccess', '--exactOptionalPropertyTypes', '--pretty', 'false'];
const PLATFORM = ['--target', 'es2023', '--lib', 'es2023,dom,dom.iterable', '--types', 'node', '--module', 'nodenext'];
const COMPILER = join(MODULES, 'typescript', 'bin', 'tsc');

/** Without `skipLibCheck`, as a program may be that uses the package. */
async function compile(folder: string, programs: readonly string[]): Promise<string[]> {
  const args = [COMPILER, ...STRICT, ...PLATFORM, ...programs];
  const { stdout } = await run(process.execPath, args, { cwd: folder }).catch((error: { stdout: string }) => error);
  return stdout.split('\n').filter((line) => /: error TS/.test(line));
}

const WRONG_EMITTER = `import { openEmitter } from '@meterline/emitter';
const meter = await openEmitter({ url: 'http://127.0.0.1:1', apiKey: 'key' });
const names = { accountId: 'a', workspace: 'w', resourceType: 'agent', resourceName: 'r' } as const;
meter.start({ ...names, billingDimension: 'agent_async_requests_count', gb: 1 });
meter.add({ ...names, billingDimension: 'agent_async_requests_count', usage: 1, eventId: 'x' });
`;

const ALL_SENT = /^accepted string\n\{\n {2}recorded: [23],\n {2}sent: [23],\n {2}retried: 0,\n/;
/** What the description records, once and a thousand times. */
const SHOWN = ['12.5', '1000'].map((usage) => expect.objectContaining({ usage, resourceName: 'support' }));

describe('the emitter, packed and installed alone', () => {
  let packed: PackedPackage;
  beforeAll(async () => {
    packed = await installPacked('emitter', 4, WRONG_EMITTER);
  });
  afterAll(() => packed.remove());

  it('the packed emitter brings the catalog and uuid, and nothing else', async () => {
    const { dependencies } = JSON.parse(await readFile(join(ROOT, 'packages/emitter/package.json'), 'utf8'));
    expect(Object.keys(dependencies)).toEqual(['@meterline/catalog', 'uuid']);
  });

  it('the packed emitter refuses a timer that is not in GB-seconds, and usage with an id in a sum, before the program runs', () => {
    expect(packed.problems.map((problem) => problem.slice(0, 24))).toEqual([
      'wrong.ts(4,25): error TS',
      'wrong.ts(5,81): error TS',
    ]);
  });

  it('the packed emitter does what its description shows', async () => {
    const collector = await TestCollector.start();
    const output = await packed.run({ COLLECTOR_URL: collector.url, METERLINE_EMITTER_KEY: 'mlk_1' });
    collector.stop();
    expect(output).toMatch(ALL_SENT);
    expect(new Set(collector.received.map(({ path, key }) => `${path} ${key}`))).toEqual(
      new Set(['/v0/events Bearer mlk_1']),
    );
    expect(collector.events).toEqual(expect.arrayContaining(SHOWN));
  });
});

const WRONG_CLIENT = `import type { MeterlineClient } from '@meterline/client';
declare const client: MeterlineClient;
const window = { startTime: new Date(0), endTime: new Date() };
const [group] = (await client.metrics('acme', { ...window, groupBy: ['resource_uuid', 'billing_dimension'] })).data;
if (group) {
  const filled: string[] = [group.resourceUuid, group.summary.usage, group.timeseries[0]?.usage ?? ''];
  const enriched: string = group.resourceName;
  console.log(filled, enriched);
}
const { summary, data } = await client.metrics('acme', window);
console.log(summary.totalUsage, data[0]?.workspace);
`;

describe('the client, packed and installed alone', () => {
  let api: TestApi;
  let packed: PackedPackage;
  beforeAll(async () => {
    api = await startApi();
    packed = await installPacked('client', 5, WRONG_CLIENT);
  });
  afterAll(async () => {
    await api.stop();
    await packed.remove();
  });

  it('the packed client knows the members of a group that its groupBy fills, and no other', () => {
    expect(packed.problems).toEqual([
      "wrong.ts(7,9): error TS2322: Type 'string | undefined' is not assignable to type 'string'.",
      "wrong.ts(11,21): error TS2339: Property 'totalUsage' does not exist on type '{ totalCost: DecimalText; }'.",
      expect.stringMatching(
        /^wrong\.ts\(11,42\): error TS2339: Property 'workspace' does not exist on type '\{ summary/,
      ),
    ]);
  });

  it('the packed client does what its description shows', async () => {
    const agent = { resourceType: 'agent', billingDimension: 'agent_compute_runtime_gbs' } as const;
    await api.seed([
      event({ ...agent, workspace: 'production', resourceName: 'crawler', usage: '12', cost: '131000.123456789012' }),
      event({ workspace: 'staging', resourceName: 'crawler', cost: '2' }),
    ]);
    const settings = { METERLINE_URL: api.url, METERLINE_API_KEY: await api.key('acme'), METERLINE_ACCOUNT: 'acme' };
    expect((await packed.run(settings)).split('\n')).toEqual([
      'production $131,000.12',
      'staging $2.00',
      'October $131,002.12',
      'agent_compute_runtime_gbs 12',
      'crawler several workspaces',
      '1 false',
      '1 resources',
      '155897.43 155897.43 true',
      expect.stringMatching(/^403 forbidden Access denied .{36}$/),
      '',
    ]);
  });
});

const folder = testFolder();
const MAX_TARBALL_BYTES = 2 * 1024 * 1024;

describe('the command, packed and installed alone', () => {
  let api: TestApi;
  let database: TestDatabase;
  let collector: CollectorFixture;
  beforeAll(async () => {
    api = await startApi();
    await registerPriceBook(oneServer(api.dependencies.warehouse), DEFAULT_PRICE_BOOK);
    database = await createTestDatabase();
    collector = await startCollectorFixture();
  });
  afterAll(async () => {
    await collector.close();
    await api.stop();
    await database.drop();
  });

  it('the packed command needs nothing else: a tarball of at most 2 MB, in which each command works', async () => {
    const settings = { HOME: folder(), npm_config_offline: 'true', npm_config_cache: folder('cache') };
    const env = { PATH: process.env['PATH'], ...settings };
    await run('npx', ['vite', 'build', '--logLevel', 'warn', 'packages/cli'], { cwd: ROOT });
    const packed = ['pack', '--json', '--pack-destination', folder(), './packages/cli/dist/package'];
    const [{ filename }] = packOutput.parse(JSON.parse((await run('npm', packed, { cwd: ROOT, env })).stdout));
    expect((await stat(folder(filename))).size).toBeLessThan(MAX_TARBALL_BYTES);
    await run('npm', ['install', '--no-audit', '--no-fund', `./${filename}`], { cwd: folder(), env });
    const { packages } = JSON.parse(await readFile(folder('node_modules/.package-lock.json'), 'utf8'));
    expect(Object.keys(packages)).toEqual(['node_modules/meterline']);

    await api.seed([event({ cost: '2' })]);
    const key = await api.key('acme', 'admin');
    const emitter = await collector.account();
    const variables = {
      ...env,
      ...databaseVariables(database.options),
      REDIS_URL: testRedisUrl(),
      METERLINE_API_URL: api.url,
      METERLINE_API_KEY: key,
      METERLINE_EMITTER_KEY: emitter.key,
      // Loads the proxy's library, which reaches loopback addresses directly.
      HTTP_PROXY: 'http://127.0.0.1:1',
    };
    const month = ['--month', '2025-10'];
    const day = ['--from', '2026-01-01', '--to', '2026-01-02'];
    const profile = ['--profile', 'packed'];
    const toEmit = JSON.stringify(collected({ accountId: emitter.account }));
    const cases: readonly (readonly [args: string[], printed: RegExp, stdin?: string])[] = [
      [['--version'], /^0\.1\.0\n$/],
      [['--help'], /Operating Meterline/],
      [['completion', 'bash'], /complete/],
      [['complete', '--', 'metrics', '--com'], /--compare/],
      [['whoami'], /admin of acme/],
      [['accounts'], /acme/],
      [['metrics', ...month], /\$2\.00/],
      [['explain', ...month], /1 shown/],
      [['resource-types', ...month], /sandbox/],
      [['export', 'focus', ...month, '--format', 'parquet'], /^PAR1/],
      [['alerts', 'list'], /^No alerts/],
      [['dimensions'], /sandbox_compute_runtime_gbs/],
      [['estimate', 'agent_async_requests_count=2'], /Total/],
      [['emit', '--check', '/dev/null'], /^0 valid events/],
      [['migrate'], /is up to date/],
      [['login'], /Logged in to .*: admin of acme/, key],
      [['login', ...profile, '--api-url', api.url], /Use it with --profile packed/, key],
      [['keys', 'list', ...profile], /^KEY .*\n\S+ +acme +admin/],
      [['logout', ...profile], /^Logged out/],
      [['keys', 'list', '--account', 'nobody', '--redis-url', testRedisUrl()], /^No keys/],
      [['emit', '-', '--url', collector.service.url], /^Sent 1 event/, toEmit],
      [['queue', 'status'], /^waiting/],
      [['rejected', 'list', '--account', 'nobody'], /^No rejections/],
      [['reprice', '--account', 'nobody', ...day, '--dry-run'], /no events in this window/],
      [['audit', ...day], /agree/],
      [['retention', 'status'], /^No month is closed/],
    ];
    const command = folder('node_modules/.bin/meterline');
    for (const [args, printed, stdin = ''] of cases) {
      const running = run(command, args, { cwd: folder(), env: variables });
      running.child.stdin?.end(stdin);
      const { stdout, stderr } = await running;
      expect({ args, output: stdout + stderr }).toEqual({ args, output: expect.stringMatching(printed) });
    }
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(new StdioClientTransport({ command, args: ['mcp'], cwd: folder(), env: settings }));
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain('query_usage');
    await client.close();
  });
});
