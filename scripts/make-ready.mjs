/**
 * Makes a fresh clone ready to run, with nothing but Node and npm: installs the packages, finds or installs a Redis,
 * compiles, builds the web page. Quick and silent when there is nothing to do; prints what it does when a step takes long.
 *
 * Node built-ins only: it runs before anything is installed.
 */
import { spawn } from 'node:child_process';
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureRedisServer } from '../packages/local-stack/hosts/redis-binary.js';
import { ensureChromium } from '../test/setup/chromium-binary.mjs';
import { stampOfInputs } from './stamp.mjs';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
/** What `npm start` runs. */
const JOINED = join(ROOT, 'dist', 'start');
const ENTRY = join(JOINED, 'start.mjs');
/** Written last, so that what was interrupted is done again. */
const STAMP = join(JOINED, 'made-of');
const FAILURE_TAIL_LINES = 30;
/** A step without changes takes less time than this, and prints nothing. */
const SILENT_MS = 1_500;
/** How often a long step prints that it is still running. */
const REMINDER_MS = 20_000;

const say = (line) => console.log(line);

/**
 * For what runs the tests, a bench or a build.
 * @param browser whether to find or install a browser too, for the tests of the page
 */
export async function makeReadyForTests(browser) {
  await requireNode();
  await Promise.all([installPackages(true), ensureRedisServer({ say })]);
  if (browser) await ensureChromium({ say });
  await compile(true);
  await announced('Building the web page', buildPage);
}

/**
 * For `npm start`, which needs neither the tools of tests nor a check of types. Whether there is anything to do, a stamp says in a
 * few milliseconds: the compiler, the page and the packages need a third of a second of processor time to say so.
 * @returns the file to run
 */
export async function makeReadyToStart() {
  await requireNode();
  const made = await readFile(STAMP, 'utf8').catch(() => '');
  // A start looks for Redis itself.
  if (made === stampOfInputs(ROOT)) return ENTRY;
  const usesOwnRedis = Boolean(process.env.REDIS_URL);
  await Promise.all([installPackages(false), usesOwnRedis || ensureRedisServer({ say })]);
  // Of what is compiled now: what changes meanwhile is compiled the next time.
  const stamp = stampOfInputs(ROOT);
  await compile(false);
  await rm(JOINED, { recursive: true, force: true });
  await Promise.all([
    announced('Building the web page', buildPage),
    announced('Joining the files of the services', joinFiles),
  ]);
  await writeFile(STAMP, stamp);
  return ENTRY;
}

async function requireNode() {
  const { engines } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  const oldest = engines.node.replace('>=', '');
  const [major, minor] = oldest.split('.').map(Number);
  const [ownMajor, ownMinor] = process.versions.node.split('.').map(Number);
  if (ownMajor > major || (ownMajor === major && ownMinor >= minor)) return;
  throw new Error(`Node ${oldest} or newer is needed; this is ${process.versions.node}.`);
}

/**
 * `npm install` and never `npm ci`: a lock file lists optional packages of the platform that it was made on only. What is in
 * devDependencies is left out until tests need it, and then never removed.
 */
async function installPackages(forTests) {
  const modules = join(ROOT, 'node_modules');
  const installed = await modifiedAt(join(modules, '.package-lock.json'));
  const hasTools = (await modifiedAt(join(modules, 'jest', 'package.json'))) > 0;
  if (installed >= (await newestManifest()) && (hasTools || !forTests)) return;
  const step = installed === 0 ? 'Installing packages (first run only, about half a minute)' : 'Updating packages';
  const args = ['install', '--no-audit', '--no-fund', '--loglevel=error'];
  if (!forTests && !hasTools) args.push('--omit=dev');
  await announced(step, () => run('npm', args, 'npm install failed'));
}

async function newestManifest() {
  const manifests = ['package.json', 'package-lock.json'];
  for (const group of ['packages', 'services']) {
    for (const name of await readdir(join(ROOT, group)).catch(() => []))
      manifests.push(join(group, name, 'package.json'));
  }
  return Math.max(...(await Promise.all(manifests.map((file) => modifiedAt(join(ROOT, file))))));
}

/** Zero for a file that does not exist. */
async function modifiedAt(file) {
  return stat(file).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  );
}

/** Without the tests and without a check of types, unless for tests: a fresh clone starts ten seconds sooner. */
async function compile(forTests) {
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  const projects = await productProjects();
  // The compiler takes what it has noted for made, though a dist/ was removed.
  const made = await Promise.all(projects.map((project) => modifiedAt(join(ROOT, project, 'dist'))));
  const options = made.every((time) => time > 0) ? [] : ['--force'];
  if (!forTests) options.push('--noCheck', ...projects);
  const args = [compiler, '-b', ...options];
  await announced('Compiling', () => run(process.execPath, args, 'The TypeScript does not compile'));
}

function buildPage() {
  return run(process.execPath, [join(ROOT, 'scripts', 'build-page.mjs')], 'The web page cannot be built');
}

/** In a process of its own, so that the bundler's memory is not kept for as long as the stack runs. */
function joinFiles() {
  return run(
    process.execPath,
    [join(ROOT, 'scripts', 'bundle.mjs'), JOINED],
    'The files of the services cannot be joined',
  );
}

async function productProjects() {
  const { references } = JSON.parse(await readFile(join(ROOT, 'tsconfig.json'), 'utf8'));
  return references.map(({ path }) => path).filter((path) => path !== 'test');
}

/** Prints what the step does after a moment, and again from time to time. */
async function announced(step, work) {
  const started = Date.now();
  const notice = setTimeout(() => say(`${step}…`), SILENT_MS);
  const reminder = setInterval(() => {
    say(`${step}: ${Math.round((Date.now() - started) / 1000)} s so far…`);
  }, REMINDER_MS);
  try {
    await work();
  } finally {
    clearTimeout(notice);
    clearInterval(reminder);
  }
}

/** Shows the command's output only if it fails. */
function run(command, args, failure) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: ROOT,
      env: withoutNpmScript(process.env),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const output = [];
    child.stdout.on('data', (chunk) => output.push(chunk));
    child.stderr.on('data', (chunk) => output.push(chunk));
    child.once('error', (error) => reject(new Error(`${failure}: ${error.message}`)));
    child.once('close', (code, signal) => {
      if (code === 0) return resolve();
      const tail = Buffer.concat(output).toString('utf8').trimEnd().split('\n').slice(-FAILURE_TAIL_LINES);
      console.error(tail.join('\n'));
      reject(new Error(`${failure} (${signal ?? `exit code ${code}`}).`));
    });
  });
}

/** Without the variables that npm sets for the current command (`npm start --foo`): a nested npm must not use them. */
function withoutNpmScript(env) {
  const ofThisCommand = /^npm_(lifecycle|package|command$|config_(ignore_scripts|omit|include|production|workspace))/;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !ofThisCommand.test(name)));
}
