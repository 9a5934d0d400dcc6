/**
 * Runs the tests that depend on the runtime with other versions of Node: the contract, end to end, the oracle and
 * `npm start`. Every process that they start runs on that version as well: the services, the embedded ClickHouse, jest.
 *
 * Usage: `npm run test:node -- VERSION... [PATTERN...]`, such as `npm run test:node -- 24 26`. A version is what npm
 * understands (24, 24.15.0); patterns choose other test files.
 *
 * A version comes from the npm registry (package node-<platform>-<arch>) into node_modules/.cache, once. After that no
 * network is needed.
 */
import { execFile, spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
const CACHE = join(ROOT, 'node_modules', '.cache', 'node-versions');
const RUNTIME_PACKAGE = `node-${process.platform}-${process.arch}`;
const JEST = join(ROOT, 'node_modules', 'jest', 'bin', 'jest.js');
const JEST_FLAGS = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
const TESTS = ['test/contract', 'test/e2e', 'test/oracle', 'packages/local-stack'];
const VERSION = /^\d+(\.\d+){0,2}$/;

const run = promisify(execFile);
const versions = process.argv.slice(2).filter((argument) => VERSION.test(argument));
const patterns = process.argv.slice(2).filter((argument) => !VERSION.test(argument));

// Ctrl-C reaches jest as well; this process waits until jest has cleaned up.
process.on('SIGINT', () => {});

const results = [];
try {
  if (versions.length === 0) throw new Error('name a version of Node: npm run test:node -- 24');
  for (const version of versions) {
    const node = await provideNode(version);
    results.push(await test(node, patterns.length > 0 ? patterns : TESTS));
  }
} catch (error) {
  console.error(`meterline: ${error.message}`);
  process.exitCode = 1;
}
console.log(results.join('\n'));

/** The executable of that version; installs it first if it is not there. */
async function provideNode(version) {
  const directory = join(CACHE, version);
  const executable = join(directory, 'node_modules', RUNTIME_PACKAGE, 'bin', 'node');
  if (await versionOf(executable)) return executable;
  console.log(`Installing Node ${version} (package ${RUNTIME_PACKAGE})…`);
  await mkdir(directory, { recursive: true });
  // A project of its own: without it npm would install into Meterline's.
  await writeFile(join(directory, 'package.json'), '{ "private": true }\n');
  const args = ['install', '--no-audit', '--no-fund', '--loglevel=error', `${RUNTIME_PACKAGE}@${version}`];
  await run('npm', args, { cwd: directory, env: withoutNpm(process.env) }).catch((error) => {
    throw new Error(`Node ${version} could not be installed: ${error.stderr || error.message}`, { cause: error });
  });
  if (await versionOf(executable)) return executable;
  throw new Error(`${RUNTIME_PACKAGE}@${version} has no Node that runs on this machine`);
}

/** Such as `v24.15.0`; undefined when there is no such executable or it does not run. */
function versionOf(executable) {
  return run(executable, ['--version']).then(
    ({ stdout }) => stdout.trim(),
    () => undefined,
  );
}

/** @returns one line: which version ran, how it ended and how long it took */
async function test(executable, files) {
  const version = await versionOf(executable);
  console.log(`Testing with Node ${version}: ${files.join(' ')}`);
  const started = Date.now();
  const env = { ...withoutNpm(process.env), PATH: `${dirname(executable)}${delimiter}${process.env.PATH}` };
  const code = await new Promise((resolve, reject) => {
    const child = spawn(executable, [...JEST_FLAGS, JEST, ...files], { cwd: ROOT, env, stdio: 'inherit' });
    const forward = () => child.kill('SIGTERM');
    process.once('SIGTERM', forward);
    child.once('error', reject).once('exit', (exitCode) => {
      process.off('SIGTERM', forward);
      resolve(exitCode ?? 130);
    });
  });
  if (code !== 0) process.exitCode = code;
  const seconds = ((Date.now() - started) / 1000).toFixed(1);
  return `${code === 0 ? '✓' : '✗'} Node ${version}: ${code === 0 ? 'passed' : `failed with code ${code}`} (${seconds} s)`;
}

/** What npm tells its scripts about the command in progress, and about the Node that runs it, is not for what runs below. */
function withoutNpm(env) {
  const ofThisCommand =
    /^(NODE|npm_(execpath|node_execpath|command|lifecycle.*|package.*|config_(ignore_scripts|omit|include|production|workspace|local_prefix).*))$/;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !ofThisCommand.test(name)));
}
