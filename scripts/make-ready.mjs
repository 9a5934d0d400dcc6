/**
 * Makes a fresh clone ready to run, with nothing but Node and npm: installs packages, compiles, builds the web page, and beside that has the
 * system's package manager install the programs that are missing. Silent when there is nothing to do. Imports Node's own modules, and
 * nothing that must be installed or compiled first.
 *
 * Usage: `node scripts/make-ready.mjs [--tests [--programs]]`
 *
 * Without options for `npm start`, which needs Redis unless REDIS_URL is set. `--tests` adds development dependencies and the check of types,
 * `--programs` Redis and a browser.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findExecutable, REDIS } from '../packages/local-stack/src/system-package.js';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
const MODULES = join(ROOT, 'node_modules');
const DASHBOARD = 'packages/dashboard';
const PAGE = `${DASHBOARD}/dist/page/index.html`;
const PAGE_INPUTS = ['package-lock.json', DASHBOARD, 'packages/catalog/src', 'packages/client/src'];
/** Steps that take less time print nothing. */
const SILENT_MS = 1_500;
const REMINDER_MS = 20_000;
/** The exit code that a shell reports for a command that Ctrl-C ended. */
const INTERRUPTED = 130;

/** Commands that end with this process: after Ctrl-C, npm alone would go on and then roll back for up to a minute, beside the next start. */
const running = new Set();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    for (const child of running) child.kill('SIGKILL');
    process.exit(INTERRUPTED);
  });
}

const flags = process.argv.slice(2);
try {
  await makeReady({ forTests: flags.includes('--tests'), withPrograms: flags.includes('--programs') });
} catch (error) {
  console.error(`meterline: ${error.message}`);
  // An installation of programs ends by itself.
  process.exit(1);
}

async function makeReady({ forTests, withPrograms }) {
  requireNode();
  const programs = installPrograms({
    redis: forTests ? withPrograms : !process.env.REDIS_URL,
    browser: withPrograms,
  });
  // Before packages are installed, because npm may write the lock file again.
  const isPageBuilt = modifiedAt(PAGE) > Math.max(...PAGE_INPUTS.map(newest));
  await installPackages(forTests, { pageTools: forTests || !isPageBuilt });
  // Vite reads the sources of the packages that the page imports.
  await all([compile(forTests), ...(isPageBuilt ? [] : [buildPage()])]);
  await announce('Waiting for the package manager', programs);
}

function requireNode() {
  const oldest = JSON.parse(read('package.json')).engines.node.replace('>=', '');
  const isNewer = process.versions.node.localeCompare(oldest, 'en', { numeric: true }) >= 0;
  if (!isNewer) throw new Error(`Node ${oldest} or newer is needed; this is ${process.versions.node}.`);
}

/**
 * Saves the time that the programs would take later. A failure is not reported here: the program that needs Redis or the browser tries again
 * and says why it failed and what to do.
 */
async function installPrograms({ redis, browser }) {
  if (redis && !(await findExecutable(REDIS.program, process.env))) await install('scripts/install-redis.mjs');
  if (browser) await install('test/setup/chromium-binary.mjs');
}

/** In a session of its own, which Ctrl-C does not reach: a package manager that is interrupted may leave a package half installed. */
async function install(script) {
  const child = spawn(process.execPath, [script], {
    cwd: ROOT,
    detached: true,
    stdio: ['ignore', 'inherit', 'ignore'],
  });
  await once(child, 'close').catch(() => undefined);
}

/**
 * `npm ci` for a fresh clone: it removes what is installed, such as development dependencies, which `npm start` leaves out until tests need
 * them. The tools that build the page are left out where it is built, as in an archive of a release.
 */
async function installPackages(forTests, { pageTools }) {
  const list = 'node_modules/.package-lock.json';
  // npm writes it last: an installation that was killed may have left the folder.
  const installed = modifiedAt(list);
  const has = (name) => installed > 0 && read(list).includes(`"node_modules/${name}"`);
  const [hasTestTools, hasPageTools] = [has('jest'), has('vite')];
  const folders = ['packages', 'services'].flatMap((group) =>
    readdirSync(join(ROOT, group)).map((name) => `${group}/${name}`),
  );
  // A package that was removed may have left a folder.
  const workspaces = folders.filter((folder) => modifiedAt(`${folder}/package.json`) > 0);
  const manifests = ['package.json', 'package-lock.json', ...workspaces.map((folder) => `${folder}/package.json`)];
  const isCurrent = installed >= Math.max(...manifests.map(modifiedAt));
  if (isCurrent && (hasTestTools || !forTests) && (hasPageTools || !pageTools)) return;
  const args = [
    ...[installed === 0 ? 'ci' : 'install', '--no-audit', '--no-fund', '--loglevel=error'],
    ...(forTests || hasTestTools ? [] : ['--omit=dev']),
    ...(pageTools || hasPageTools ? [] : withoutDashboard(workspaces)),
  ];
  await step(installed === 0 ? 'Installing packages (about half a minute, once)' : 'Updating packages', 'npm', args);
}

function withoutDashboard(workspaces) {
  const others = workspaces.filter((folder) => folder !== DASHBOARD);
  return ['--include-workspace-root', ...others.map((folder) => `--workspace=${folder}`)];
}

async function compile(forTests) {
  const projects = JSON.parse(read('tsconfig.json')).references.map(({ path }) => path);
  // Vite compiles the page; only tests need its types.
  const products = projects.filter((path) => !path.startsWith('test') && (forTests || path !== DASHBOARD));
  // The compiler trusts its notes of the last build, although a dist/ may have been removed.
  const isWhole = products.every((project) => modifiedAt(`${project}/dist`) > 0);
  const args = [...(isWhole ? [] : ['--force']), ...(forTests ? [] : ['--noCheck', ...products])];
  await step('Compiling', process.execPath, [join(MODULES, 'typescript', 'bin', 'tsc'), '-b', ...args]);
}

async function buildPage() {
  const vite = [join(MODULES, 'vite', 'bin', 'vite.js'), 'build', '--logLevel', 'warn', DASHBOARD];
  await step('Building the web page', process.execPath, vite);
}

function read(file) {
  return readFileSync(join(ROOT, file), 'utf8');
}

/** Zero for a file that does not exist. */
function modifiedAt(file) {
  return statSync(join(ROOT, file), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** When the file was changed, or the newest file of the folder that the page may be made of. */
function newest(path) {
  if (!statSync(join(ROOT, path)).isDirectory()) return modifiedAt(path);
  const entries = readdirSync(join(ROOT, path), { withFileTypes: true });
  const inputs = entries.filter(({ name }) => !/^dist$|\.(test\.tsx?|d\.ts|map|tsbuildinfo)$/.test(name));
  return Math.max(0, ...inputs.map(({ name }) => newest(join(path, name))));
}

/** Waits for all, so that none runs on when another one has failed. @throws the first failure */
async function all(steps) {
  await Promise.allSettled(steps);
  await Promise.all(steps);
}

/** Runs a command, and shows its output only if it fails. */
async function step(what, command, args) {
  const child = spawn(command, args, {
    cwd: ROOT,
    env: buildEnvironment(process.env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => output.push(chunk));
  running.add(child);
  const [code, signal] = await announce(what, once(child, 'close'));
  running.delete(child);
  if (code === 0) return;
  // Ctrl-C reaches the command as well, maybe before this process.
  if (signal === 'SIGINT') process.exit(INTERRUPTED);
  console.error(Buffer.concat(output).toString('utf8').trimEnd());
  throw new Error(`${what} failed (exit code ${code}).`);
}

/** Says what is going on after a moment, and again from time to time. */
async function announce(what, work) {
  const started = Date.now();
  const notice = setTimeout(() => console.log(`${what}…`), SILENT_MS);
  const seconds = () => Math.round((Date.now() - started) / 1000);
  const reminder = setInterval(() => console.log(`${what}: ${seconds()} s so far…`), REMINDER_MS);
  try {
    return await work;
  } finally {
    clearTimeout(notice);
    clearInterval(reminder);
  }
}

/**
 * Without the variables that npm sets for the current command (`npm start --foo`), which a nested npm must not use, and without NODE_ENV, by
 * which npm chooses what it installs, and Vite which React it builds.
 */
function buildEnvironment(env) {
  const ignored =
    /^NODE_ENV$|^npm_(lifecycle|package|command$|config_(ignore_scripts|omit|include|production|workspace))/;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !ignored.test(name)));
}
