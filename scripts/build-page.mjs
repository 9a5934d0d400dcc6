/**
 * Builds the web page, unless its sources have not changed since the last build: their hash is kept next to it. Run it
 * after `tsc -b`, because it bundles the compiled catalog and client.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
const DASHBOARD = join(ROOT, 'packages', 'dashboard');
const HASH_FILE = join(DASHBOARD, 'dist', 'page.hash');
/** The lock file covers every library in the bundle. */
const INPUTS = [
  'package-lock.json',
  'scripts/build-page.mjs',
  'packages/dashboard/index.html',
  'packages/dashboard/package.json',
  'packages/dashboard/vite.config.js',
  'packages/dashboard/src',
  'packages/catalog/dist',
  'packages/client/dist',
];
/** Files in those folders that are not bundled. */
const NOT_BUNDLED = /\.(test\.tsx?|d\.ts|map|tsbuildinfo)$/;

const hash = await hashOfInputs();
const built = await readFile(HASH_FILE, 'utf8').catch(() => '');
if (built !== hash) await build();

async function build() {
  const vite = join(ROOT, 'node_modules', 'vite', 'bin', 'vite.js');
  const child = spawn(process.execPath, [vite, 'build', '--logLevel', 'warn'], { cwd: DASHBOARD, stdio: 'inherit' });
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  process.exitCode = code ?? 1;
  // Written last, so that an interrupted build runs again.
  if (code === 0) await writeFile(HASH_FILE, hash);
}

async function hashOfInputs() {
  const hash = createHash('sha256');
  for (const input of INPUTS) {
    for (const file of await filesOf(join(ROOT, input))) {
      hash.update(`${relative(ROOT, file)}\0`).update(await readFile(file));
    }
  }
  return hash.digest('hex');
}

/** The file itself, or all files of the folder, always in the same order. */
async function filesOf(path) {
  const entries = await readdir(path, { recursive: true, withFileTypes: true }).catch((error) => {
    if (error.code === 'ENOTDIR') return undefined;
    throw error;
  });
  if (!entries) return [path];
  return entries
    .filter((entry) => entry.isFile() && !NOT_BUNDLED.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
