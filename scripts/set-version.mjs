/**
 * Gives all workspaces one version, in which they need each other: `npm run set-version -- 0.2.0`. `npm version` cannot: it installs
 * after each manifest, when the others ask for a version that is nowhere. Then `npm install` brings the lock file up to date.
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
console.log(`${folders.length} manifests have the version ${version}; now npm install`);
