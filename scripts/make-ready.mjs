/**
 * Makes a fresh clone ready to run, with nothing but Node and npm: installs the packages, compiles, builds the web page. Quick and silent
 * when there is nothing to do; says what it does when a step takes long. Node built-ins only: it runs before anything is installed.
 *
 * Usage: `node scripts/make-ready.mjs [--tests]`; with --tests also what only tests, benches and packages need.
 */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
const MODULES = join(ROOT, 'node_modules');
/** What the page is made of; compiled files that did not change keep their time. */
const PAGE_INPUTS = ['package-lock.json', 'packages/dashboard', 'packages/catalog/dist', 'packages/client/dist'];
/** What takes less time prints nothing. */
const SILENT_MS = 1_500;
const REMINDER_MS = 20_000;

try {
  await makeReady(process.argv.includes('--tests'));
} catch (error) {
  console.error(`meterline: ${error.message}`);
  process.exitCode = 1;
}

async function makeReady(forTests) {
  requireNode();
  await installPackages(forTests);
  const projects = JSON.parse(read('tsconfig.json')).references.map(({ path }) => path);
  const products = projects.filter((path) => !path.startsWith('test'));
  // The compiler takes what it has noted for made, though a dist/ was removed.
  const isWhole = products.every((project) => modifiedAt(`${project}/dist`) > 0);
  // `npm start` needs no check of types: a fresh clone starts ten seconds sooner.
  const args = [...(isWhole ? [] : ['--force']), ...(forTests ? [] : ['--noCheck', ...products])];
  await step('Compiling', process.execPath, [join(MODULES, 'typescript', 'bin', 'tsc'), '-b', ...args]);
  if (modifiedAt('packages/dashboard/dist/page/index.html') > Math.max(...PAGE_INPUTS.map(newest))) return;
  const vite = [join(MODULES, 'vite', 'bin', 'vite.js'), 'build', '--logLevel', 'warn', 'packages/dashboard'];
  await step('Building the web page', process.execPath, vite);
}

function requireNode() {
  const oldest = JSON.parse(read('package.json')).engines.node.replace('>=', '');
  const isNewer = process.versions.node.localeCompare(oldest, 'en', { numeric: true }) >= 0;
  if (!isNewer) throw new Error(`Node ${oldest} or newer is needed; this is ${process.versions.node}.`);
}

/**
 * `npm install` and never `npm ci`: a lock file lists optional packages of the platform that it was made on only. What is in
 * devDependencies is left out until tests need it, and then never removed.
 */
async function installPackages(forTests) {
  const installed = modifiedAt('node_modules/.package-lock.json');
  // npm writes this list last: an installation that was killed may have left the folder.
  const hasTools = installed > 0 && read('node_modules/.package-lock.json').includes('"node_modules/jest"');
  const manifests = ['package.json', 'package-lock.json'];
  for (const group of ['packages', 'services']) {
    for (const name of readdirSync(join(ROOT, group))) manifests.push(join(group, name, 'package.json'));
  }
  if (installed >= Math.max(...manifests.map(modifiedAt)) && (hasTools || !forTests)) return;
  const args = [
    'install',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
    ...(forTests || hasTools ? [] : ['--omit=dev']),
  ];
  await step(installed === 0 ? 'Installing packages (about half a minute, once)' : 'Updating packages', 'npm', args);
}

function read(file) {
  return readFileSync(join(ROOT, file), 'utf8');
}

/** Zero for a file that does not exist. */
function modifiedAt(file) {
  return statSync(join(ROOT, file), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** When the file was changed, or the newest file in the folder that the page may be made of. */
function newest(path) {
  if (!statSync(join(ROOT, path)).isDirectory()) return modifiedAt(path);
  const entries = readdirSync(join(ROOT, path), { withFileTypes: true });
  const inputs = entries.filter(({ name }) => !/^dist$|\.(test\.tsx?|d\.ts|map|tsbuildinfo)$/.test(name));
  return Math.max(0, ...inputs.map(({ name }) => newest(join(path, name))));
}

/** Says what the step does after a moment, and again from time to time; shows its output only if it fails. */
async function step(what, command, args) {
  const started = Date.now();
  const notice = setTimeout(() => console.log(`${what}…`), SILENT_MS);
  const seconds = () => Math.round((Date.now() - started) / 1000);
  const reminder = setInterval(() => console.log(`${what}: ${seconds()} s so far…`), REMINDER_MS);
  const child = spawn(command, args, {
    cwd: ROOT,
    env: withoutNpmScript(process.env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => output.push(chunk));
  const ended = new Promise((resolve, reject) => child.once('error', reject).once('close', resolve));
  const code = await ended.finally(() => {
    clearTimeout(notice);
    clearInterval(reminder);
  });
  if (code === 0) return;
  console.error(Buffer.concat(output).toString('utf8').trimEnd());
  throw new Error(`${what} failed (exit code ${code}).`);
}

/** Without the variables that npm sets for the current command (`npm start --foo`): a nested npm must not use them. */
function withoutNpmScript(env) {
  const ofThisCommand = /^npm_(lifecycle|package|command$|config_(ignore_scripts|omit|include|production|workspace))/;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !ofThisCommand.test(name)));
}
