/**
 * Runs the tests that depend on the runtime with other versions of Node: the contract, end to end, the oracle and
 * `npm start`. Every process that they start runs on that version as well: the services, the embedded ClickHouse, jest.
 *
 * Usage: `npm run test:node -- VERSION... [PATTERN...]`, such as `npm run test:node -- 24 26`. A version is what npm
 * understands (24, 24.15.0); with patterns, only matching test files run.
 *
 * A version comes from the npm registry (package node-<platform>-<arch>) into node_modules/.cache, once. After that no
 * network is needed.
 */
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { ignoreInterrupts, JEST, ROOT, runNode, secondsSince } from './run-steps.mjs';

const CACHE = join(ROOT, 'node_modules', '.cache', 'node-versions');
const RUNTIME_PACKAGE = `node-${process.platform}-${process.arch}`;
const TESTS = ['test/contract', 'test/e2e', 'test/oracle', 'packages/local-stack'];
const VERSION = /^\d+(\.\d+){0,2}$/;

const run = promisify(execFile);
const versions = process.argv.slice(2).filter((argument) => VERSION.test(argument));
const patterns = process.argv.slice(2).filter((argument) => !VERSION.test(argument));

ignoreInterrupts();

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
  // Without a package.json here npm would install into Meterline's node_modules.
  await writeFile(join(directory, 'package.json'), '{ "private": true }\n');
  const args = ['install', '--no-audit', '--no-fund', '--loglevel=error', `${RUNTIME_PACKAGE}@${version}`];
  await run('npm', args, { cwd: directory, env: withoutNpm(process.env) }).catch((error) => {
    throw new Error(`Node ${version} could not be installed: ${error.stderr || error.message}`, { cause: error });
  });
  if (await versionOf(executable)) return executable;
  throw new Error(`${RUNTIME_PACKAGE}@${version} has no Node that runs on this machine`);
}

/** Such as `v24.15.0`; undefined when the executable does not exist or does not run. */
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
  const code = await runNode([...JEST, ...files], { executable, env });
  if (code !== 0) process.exitCode = code;
  return `${code === 0 ? '✓' : '✗'} Node ${version}: ${code === 0 ? 'passed' : `failed with code ${code}`} (${secondsSince(started)})`;
}

/** Without the variables that npm sets for its scripts: they describe this npm command and the Node that runs it. */
function withoutNpm(env) {
  const ofThisCommand =
    /^(NODE|npm_(execpath|node_execpath|command|lifecycle.*|package.*|config_(ignore_scripts|omit|include|production|workspace|local_prefix).*))$/;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !ofThisCommand.test(name)));
}
