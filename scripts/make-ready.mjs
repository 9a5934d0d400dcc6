/**
 * Prepares a fresh clone on a machine that has only Node and npm: installs packages, compiles, and builds the web page. In parallel,
 * installs missing programs with the system's package manager. Prints nothing if there is nothing to do. The script imports only modules
 * that need neither installation nor compilation.
 *
 * Usage: `node scripts/make-ready.mjs [--tests [--programs]]`
 *
 * Without options, prepares `npm start`, which needs Redis unless REDIS_URL is set. `--tests` adds development dependencies and type
 * checks. `--programs` adds Redis and a browser.
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
/** Exit code of a command that was ended by Ctrl-C. */
const INTERRUPTED = 130;

/** Child processes to kill when this process ends. After Ctrl-C, npm would otherwise roll back for a minute, during the next start. */
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
  // Exit without waiting for the installation of programs, which continues in a session of its own.
  process.exit(1);
}

async function makeReady({ forTests, withPrograms }) {
  requireNode();
  const programs = installPrograms({
    redis: forTests ? withPrograms : !process.env.REDIS_URL,
    browser: withPrograms,
  });
  // Check this before packages are installed, because npm may rewrite the lock file, which is an input of the page.
  const isPageBuilt = modifiedAt(PAGE) > Math.max(...PAGE_INPUTS.map(newest));
  await installPackages(forTests, { pageTools: forTests || !isPageBuilt });
  // The page can be built in parallel, because Vite reads the sources of the packages and not their compiled files.
  await all([compile(forTests), ...(isPageBuilt ? [] : [buildPage()])]);
  await announce('Waiting for the package manager', programs);
}

function requireNode() {
  const oldest = JSON.parse(read('package.json')).engines.node.replace('>=', '');
  const isNewer = process.versions.node.localeCompare(oldest, 'en', { numeric: true }) >= 0;
  if (!isNewer) throw new Error(`Node ${oldest} or newer is needed; this is ${process.versions.node}.`);
}

/** Installs programs early, to save time. Ignores failures: the program that needs Redis or the browser tries again and reports them. */
async function installPrograms({ redis, browser }) {
  if (redis && !(await findExecutable(REDIS.program, process.env))) await install('scripts/install-redis.mjs');
  if (browser) await install('test/setup/chromium-binary.mjs');
}

/** Runs an installation in its own session, so that Ctrl-C does not interrupt the package manager and leave a package half installed. */
async function install(script) {
  const child = spawn(process.execPath, [script], {
    cwd: ROOT,
    detached: true,
    stdio: ['ignore', 'inherit', 'ignore'],
  });
  await once(child, 'close').catch(() => undefined);
}

/**
 * Installs npm packages. `npm ci` removes installed packages, so it is used only for a fresh clone. Development dependencies are omitted
 * until tests need them. The tools that build the page are omitted if the page is already built, as in a release archive.
 */
async function installPackages(forTests, { pageTools }) {
  const list = 'node_modules/.package-lock.json';
  // npm writes this file last, so it is missing if an installation was killed.
  const installed = modifiedAt(list);
  const has = (name) => installed > 0 && read(list).includes(`"node_modules/${name}"`);
  const [hasTestTools, hasPageTools] = [has('jest'), has('vite')];
  const folders = ['packages', 'services'].flatMap((group) =>
    readdirSync(join(ROOT, group)).map((name) => `${group}/${name}`),
  );
  // A removed workspace may have left a folder without a manifest, so ignore such folders.
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
  // Vite compiles the page itself, so only tests need the type check of the page.
  const products = projects.filter((path) => !path.startsWith('test') && (forTests || path !== DASHBOARD));
  // The compiler's build info does not notice a removed dist/ folder, so force a build if one is missing.
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

function newest(path) {
  if (!statSync(join(ROOT, path)).isDirectory()) return modifiedAt(path);
  const entries = readdirSync(join(ROOT, path), { withFileTypes: true });
  const inputs = entries.filter(({ name }) => !/^dist$|\.(test\.tsx?|d\.ts|map|tsbuildinfo)$/.test(name));
  return Math.max(0, ...inputs.map(({ name }) => newest(join(path, name))));
}

/** Waits for all steps, so that no step keeps running after another step has failed. @throws the first failure */
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
  // Ctrl-C also reaches the child process, maybe before it reaches this process.
  if (signal === 'SIGINT') process.exit(INTERRUPTED);
  console.error(Buffer.concat(output).toString('utf8').trimEnd());
  throw new Error(`${what} failed (exit code ${code}).`);
}

/** Prints the name of a step that takes long, and then the elapsed time at intervals. */
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
 * Returns the environment without the variables that npm sets for the current command (`npm start --foo`), because a nested npm must not
 * use them. Also removes NODE_ENV, which would change the packages that npm installs and the React build that Vite uses.
 */
function buildEnvironment(env) {
  const ignored =
    /^NODE_ENV$|^npm_(lifecycle|package|command$|config_(ignore_scripts|omit|include|production|workspace))/;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !ignored.test(name)));
}
