/** What scripts/make-ready.mjs installs and builds, in the skeleton of a clone, with scripts in place of npm, apt-get and the build tools. */
import { execFileSync, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, type FileHandle, mkdir, open, readFile, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { said } from '../harness/programs.js';
import { testFolder } from '../harness/test-folder.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const COPIED = [
  ...['scripts/make-ready.mjs', 'scripts/install-redis.mjs', 'test/setup/chromium-binary.mjs'],
  'packages/local-stack/src/system-package.js',
];
const PACKAGES = [
  'packages/catalog',
  'packages/client',
  'packages/dashboard',
  'packages/local-stack',
  'services/query',
];
const INSTALLED = 'node_modules/.package-lock.json';
const QUIET = '--no-audit --no-fund --loglevel=error';
const COMPILED = 'tsc -b --force --noCheck packages/catalog packages/client packages/local-stack services/query';

const folder = testFolder('each test');

beforeEach(async () => {
  for (const file of COPIED) await cp(join(ROOT, file), folder(file));
  const manifest = JSON.stringify({ type: 'module', engines: { node: '>=20.19' } });
  for (const path of ['.', ...PACKAGES]) await write(join(path, 'package.json'), manifest);
  for (const name of ['catalog', 'client']) await write(`packages/${name}/src/index.ts`, '');
  await write('package-lock.json', '{}');
  await write('calls', '');
  await write('tsconfig.json', JSON.stringify({ references: [...PACKAGES, 'test'].map((path) => ({ path })) }));
  // As after an installation that was killed: npm writes its list last.
  await write('node_modules/package.json', '{}');
  await tool('typescript/bin/tsc', meetInNode('build-1', 'build-2'));
  await tool('vite/bin/vite.js', meetInNode('build-2', 'build-1'));
  await program('npm', `${meet('install-1', 'install-2')}; echo '"node_modules/vite"' > ${INSTALLED}`);
  await program('apt-get', `case "$*" in *redis-server) ${meet('install-2', 'install-1')} ;; esac`);
  await program('systemctl', '');
  await program('sudo', 'shift; exec "$@"');
  await write('bin/env', '#!/bin/sh\nshift 2; exec "$@"\n', 0o755);
});

async function write(file: string, content: string, mode = 0o644): Promise<void> {
  await mkdir(dirname(folder(file)), { recursive: true });
  await writeFile(folder(file), content, { mode });
}

/** Sets when a file was changed, in seconds from now. */
const touch = (file: string, seconds: number) => utimes(folder(file), new Date(), Date.now() / 1000 + seconds);

/** A build tool that records its arguments. */
const tool = (file: string, script: string) =>
  write(
    `node_modules/${file}`,
    `const fs = require('node:fs');
    const { basename } = require('node:path');
    fs.appendFileSync('calls', [basename(__filename, '.js'), ...process.argv.slice(2)].join(' ') + '\\n');
    ${script}`,
  );

/** A program on PATH that records its arguments. */
const program = (name: string, script: string) =>
  write(`bin/${name}`, `#!/bin/sh\necho ${name} "$@" >> calls\n${script}\n`, 0o755);

const pipes: FileHandle[] = [];
afterEach(async () => {
  // Whoever still reads is at the end then.
  for (const pipe of pipes.splice(0)) await pipe.close();
});

/** Makes the pipes in which two programs meet: each tells the other that it runs, and waits for the other. */
async function makePipes(name: string): Promise<void> {
  for (const path of [folder(`${name}-1`), folder(`${name}-2`)]) {
    execFileSync('mkfifo', [path]);
    pipes.push(await open(path, 'r+'));
  }
}
const meet = (own: string, other: string) => `if [ -p ${own} ]; then echo here > ${own}; read -r _ < ${other}; fi`;
const meetInNode = (own: string, other: string) =>
  `if (fs.existsSync('${own}')) {
    fs.writeFileSync('${own}', 'here');
    fs.readSync(fs.openSync('${other}'), Buffer.alloc(9));
  }`;

function start(variables: NodeJS.ProcessEnv, options: SpawnOptions, flags: readonly string[] = []) {
  const env = { PATH: folder('bin'), ...variables };
  return spawn(process.execPath, ['scripts/make-ready.mjs', ...flags], { cwd: folder(), env, ...options });
}

/** Runs the script to its end. @returns its output, and the programs that ran, with their arguments */
async function run(variables: NodeJS.ProcessEnv = {}, flags: readonly string[] = []) {
  await write('calls', '');
  const child = start(variables, { stdio: ['ignore', 'pipe', 'inherit'] }, flags);
  const [[code], output] = await Promise.all([once(child, 'close'), child.stdout ? text(child.stdout) : '']);
  expect(code).toBe(0);
  return { output, calls: (await readFile(folder('calls'), 'utf8')).trim().split('\n').toSorted() };
}

const APT = 'apt-get -qq -o DPkg::Lock::Timeout=120 install -y --no-install-recommends';

it('a first start installs Redis beside the packages, and builds the page beside the compiler', async () => {
  await makePipes('install');
  await makePipes('build');
  const { output, calls } = await run();
  expect(output).toContain('Installing redis-server with apt-get… (continues after Ctrl-C)\n');
  expect(calls).toEqual([
    `${APT} redis-server`,
    `npm ci ${QUIET} --omit=dev`,
    'systemctl disable --now redis-server',
    COMPILED,
    'vite build --logLevel warn packages/dashboard',
  ]);
});

it('a start with REDIS_URL, or with a redis-server on PATH, installs no Redis', async () => {
  const programs = async (variables?: NodeJS.ProcessEnv) =>
    (await run(variables)).calls.map((call) => call.replace(/ .*/, ''));
  expect(await programs({ REDIS_URL: 'redis://127.0.0.1' })).not.toContain('apt-get');
  expect(await programs({ REDIS_URL: '' })).toContain('apt-get');
  await program('redis-server', '');
  expect(await programs()).not.toContain('apt-get');
});

it('tests that need servers have Redis and a browser installed beside the packages, and others neither', async () => {
  const { calls } = await run({}, ['--tests', '--programs']);
  expect(calls).toContain(`npm ci ${QUIET}`);
  expect(calls.filter((call) => call.startsWith(APT))).toEqual([`${APT} chromium`, `${APT} redis-server`]);
  const units = await run({}, ['--tests']);
  expect(units.calls.filter((call) => call.startsWith(APT))).toEqual([]);
});

it('a Redis that cannot be installed leaves the rest of the start alone', async () => {
  await program('apt-get', 'echo no network >&2; exit 100');
  const { output, calls } = await run();
  expect(output).not.toContain('network');
  expect(calls).toContain(COMPILED);
});

it('Ctrl-C ends the start and lets the package manager finish', async () => {
  await makePipes('apt');
  await program('apt-get', 'read -r _ < apt-1; echo finished >> calls');
  await makePipes('install');
  const child = start({}, { stdio: ['ignore', 'pipe', 'inherit'], detached: true });
  const ended = once(child, 'exit');
  await said(child, 'Installing redis-server');
  process.kill(-Number(child.pid), 'SIGINT');
  expect(await ended).toEqual([130, null]);
  await writeFile(folder('apt-1'), 'continue\n');
  while (!(await readFile(folder('calls'), 'utf8')).includes('finished'));
});

it('a page that is built needs no build tools, until one of its sources changes', async () => {
  await write('packages/dashboard/dist/page/index.html', '');
  await touch('packages/dashboard/dist/page/index.html', 60);
  const { calls } = await run();
  const others = PACKAGES.filter((name) => name !== 'packages/dashboard').map((name) => `--workspace=${name}`);
  expect(calls).toContain(`npm ci ${QUIET} --omit=dev --include-workspace-root ${others.join(' ')}`);
  expect(calls.filter((call) => call.startsWith('vite'))).toEqual([]);

  await write(INSTALLED, '');
  await touch('packages/catalog/src/index.ts', 120);
  const again = await run();
  expect(again.calls).toContain(`npm install ${QUIET} --omit=dev`);
  expect(again.calls).toContain('vite build --logLevel warn packages/dashboard');
});

it('an update keeps what tests need', async () => {
  await write(INSTALLED, '"node_modules/jest" "node_modules/vite"');
  await touch(INSTALLED, -60);
  expect((await run()).calls).toContain(`npm install ${QUIET}`);
});
