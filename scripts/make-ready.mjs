/**
 * Prepares a fresh clone, which only needs Node and npm. Installs packages, compiles, builds the web page, and installs missing programs with
 * the system's package manager in parallel. Prints nothing if there is nothing to do. Imports only modules that need no installation or
 * compilation.
 *
 * Usage: `node scripts/make-ready.mjs [--tests [--programs]]`
 *
 * Without options: prepares `npm start`, which needs Redis unless REDIS_URL is set. `--tests` adds development dependencies and type checks.
 * `--programs` adds Redis and a browser.
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
const SILENT_MS = 1_500;
const REMINDER_MS = 20_000;
/** The exit code of a command that was ended by Ctrl-C. */
const INTERRUPTED = 130;

/** Commands to kill together with this process. After Ctrl-C, npm would otherwise roll back for up to a minute, in parallel to the next start. */
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
  // Does not wait for the installation of programs, which continues in its own session.
  process.exit(1);
}

async function makeReady({ forTests, withPrograms }) {
  requireNode();
  const programs = installPrograms({
    redis: forTests ? withPrograms : !process.env.REDIS_URL,
    browser: withPrograms,
  });
  // Checked before packages are installed, because npm may rewrite the lock file.
  const isPageBuilt = modifiedAt(PAGE) > Math.max(...PAGE_INPUTS.map(newest));
  await installPackages(forTests, { pageTools: forTests || !isPageBuilt });
  // Can run in parallel, because Vite reads the sources of packages, and not their compiled files.
  await all([compile(forTests), ...(isPageBuilt ? [] : [buildPage()])]);
  await announce('Waiting for the package manager', programs);
}

function requireNode() {
  const oldest = JSON.parse(read('package.json')).engines.node.replace('>=', '');
  const isNewer = process.versions.node.localeCompare(oldest, 'en', { numeric: true }) >= 0;
  if (!isNewer) throw new Error(`Node ${oldest} or newer is needed; this is ${process.versions.node}.`);
}

/**
 * Installs programs early, to save time. Failures are not reported here: the program that needs Redis or the browser tries again, and reports
 * the reason and how to fix it.
 */
async function installPrograms({ redis, browser }) {
  if (redis && !(await findExecutable(REDIS.program, process.env))) await install('scripts/install-redis.mjs');
  if (browser) await install('test/setup/chromium-binary.mjs');
}

/** Runs in its own session, so that Ctrl-C does not interrupt the package manager, which could leave a package half installed. */
async function install(script) {
  const child = spawn(process.execPath, [script], {
    cwd: ROOT,
    detached: true,
    stdio: ['ignore', 'inherit', 'ignore'],
  });
  await once(child, 'close').catch(() => undefined);
}

/**
 * Uses `npm ci` only for a fresh clone, because it removes installed packages. Development dependencies are omitted until tests need them. The
 * tools that build the page are omitted if the page is already built, as in a release archive.
 */
async function installPackages(forTests, { pageTools }) {
  const list = 'node_modules/.package-lock.json';
  // npm writes this file last, so it is missing after an installation that was killed.
  const installed = modifiedAt(list);
  const has = (name) => installed > 0 && read(list).includes(`"node_modules/${name}"`);
  const [hasTestTools, hasPageTools] = [has('jest'), has('vite')];
  const folders = ['packages', 'services'].flatMap((group) =>
    readdirSync(join(ROOT, group)).map((name) => `${group}/${name}`),
  );
  // A removed workspace may have left a folder without a manifest.
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
  // Vite compiles the page itself, so only tests need its type check.
  const products = projects.filter((path) => !path.startsWith('test') && (forTests || path !== DASHBOARD));
  // The compiler's build info does not notice a removed dist/ folder.
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

function modifiedAt(file) {
  return statSync(join(ROOT, file), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** Returns the modification time of a file, or of the newest source file in a folder. */
function newest(path) {
  if (!statSync(join(ROOT, path)).isDirectory()) return modifiedAt(path);
  const entries = readdirSync(join(ROOT, path), { withFileTypes: true });
  const inputs = entries.filter(({ name }) => !/^dist$|\.(test\.tsx?|d\.ts|map|tsbuildinfo)$/.test(name));
  return Math.max(0, ...inputs.map(({ name }) => newest(join(path, name))));
}

/** Waits for all steps, so that no step keeps running after another has failed. @throws the first failure */
async function all(steps) {
  await Promise.allSettled(steps);
  await Promise.all(steps);
}

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
  // Ctrl-C also reaches the command, perhaps before this process.
  if (signal === 'SIGINT') process.exit(INTERRUPTED);
  console.error(Buffer.concat(output).toString('utf8').trimEnd());
  throw new Error(`${what} failed (exit code ${code}).`);
}

/** Prints the name of a step if it takes long, and then the elapsed time at intervals. */
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
 * Removes the variables that npm sets for the current command (`npm start --foo`), because a nested npm must not use them. Also removes
 * NODE_ENV, which would change the packages that npm installs and the React build that Vite uses.
 */
function buildEnvironment(env) {
  const ignored =
    /^NODE_ENV$|^npm_(lifecycle|package|command$|config_(ignore_scripts|omit|include|production|workspace))/;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !ignored.test(name)));
}
