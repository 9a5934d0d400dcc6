/**
 * Gives all workspaces one version, in which they need each other: `npm run set-version -- 0.2.0`. `npm version` cannot: it installs
 * after each manifest, when the others and the lock file ask for a version that is nowhere.
 */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from './run-steps.mjs';

const [version = ''] = process.argv.slice(2);
if (!/^\d+\.\d+\.\d+(-[0-9a-z.-]+)?$/.test(version)) {
  console.error('usage: npm run set-version -- 0.2.0');
  process.exit(2);
}

const folders = ['.'];
for (const group of ['packages', 'services']) {
  for (const { name } of await readdir(join(ROOT, group), { withFileTypes: true })) folders.push(join(group, name));
}
const lockPath = join(ROOT, 'package-lock.json');
const lock = await readJson(lockPath);
lock.version = version;
for (const folder of folders) {
  const path = join(ROOT, folder, 'package.json');
  const manifest = await readJson(path);
  for (const described of [manifest, lock.packages[folder === '.' ? '' : folder]]) setVersion(described);
  await writeJson(path, manifest);
}
await writeJson(lockPath, lock);
console.log(`${folders.length} manifests and the lock file have the version ${version}; now npm install`);

function setVersion(described) {
  described.version = version;
  for (const needed of [described.dependencies, described.devDependencies, described.peerDependencies]) {
    for (const name of Object.keys(needed ?? {})) if (name.startsWith('@meterline/')) needed[name] = version;
  }
}

async function readJson(path) {
  return JSON.parse(await readFile(path, 'utf8'));
}

function writeJson(path, content) {
  return writeFile(path, `${JSON.stringify(content, null, 2)}\n`);
}
