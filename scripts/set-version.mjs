/**
 * Sets the version of all workspaces and of their dependencies on each other: `npm run set-version -- 0.2.0`. Run `npm install` afterwards
 * to update the lock file. `npm version` does not work here. It installs packages after it changes each manifest, while the other manifests
 * still require a version that does not exist.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const [version = ''] = process.argv.slice(2);
if (!/^\d+\.\d+\.\d+(-[0-9a-z.-]+)?$/.test(version)) {
  console.error('usage: npm run set-version -- 0.2.0');
  process.exit(2);
}
const folders = [
  '.',
  ...['packages', 'services'].flatMap((group) => readdirSync(join(ROOT, group)).map((name) => join(group, name))),
];
for (const folder of folders) {
  const path = join(ROOT, folder, 'package.json');
  const manifest = JSON.parse(readFileSync(path, 'utf8'));
  manifest.version = version;
  for (const needed of [manifest.dependencies, manifest.devDependencies, manifest.peerDependencies]) {
    for (const name of Object.keys(needed ?? {})) if (name.startsWith('@meterline/')) needed[name] = version;
  }
  writeFileSync(path, `${JSON.stringify(manifest, null, 2)}\n`);
}
console.log(`${folders.length} manifests have version ${version}; now run npm install`);
