/**
 * A package imports what CONTRIBUTING.md says that it does. The linter holds the imports to the package's own manifest, and files to
 * no cycle; this holds manifests and compiler to the table.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string): string => readFileSync(`${ROOT}${path}`, 'utf8');

interface Manifest {
  readonly name: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** A folder without a manifest is what a build has left of a package that was removed. */
const folders = ['packages', 'services']
  .flatMap((parent) => readdirSync(`${ROOT}${parent}`).map((name) => `${parent}/${name}`))
  .filter((folder) => existsSync(`${ROOT}${folder}/package.json`));
const manifests = new Map(
  folders.map((folder): [string, Manifest] => [folder, JSON.parse(read(`${folder}/package.json`))]),
);

/** | `packages/api` | what it is | catalog, access, service | */
const rows = [...read('CONTRIBUTING.md').matchAll(/^\| `((?:packages|services)\/[\w-]+)` \|.*\| ([^|]+) \|$/gm)];
const table = new Map(rows.map(([, folder = '', imports = '']) => [folder, imports]));

it('every package has its row in the table of imports', () => {
  expect([...table.keys()].toSorted()).toEqual(folders.toSorted());
});

it.each(folders)('%s imports what its row says, and only packages above it', (folder) => {
  const { dependencies, peerDependencies } = manifests.get(folder) as Manifest;
  const declared = Object.keys({ ...dependencies, ...peerDependencies }).filter((name) =>
    name.startsWith('@meterline/'),
  );
  const words = (table.get(folder) ?? '').split(/[^a-z-]+/);
  const named = folders.filter(
    (other) => other.startsWith('packages/') && words.includes(other.slice('packages/'.length)),
  );
  expect(declared.toSorted()).toEqual(named.map((other) => manifests.get(other)?.name).toSorted());

  const order = [...table.keys()];
  for (const other of named) expect(order.indexOf(other)).toBeLessThan(order.indexOf(folder));

  // Compiler settings may hold comments, which JSON does not.
  const references = [...read(`${folder}/tsconfig.json`).matchAll(/"path": "([^"]+)"/g)];
  const compiled = references.map(([, path = '']) => join(folder, path));
  expect(compiled.toSorted()).toEqual(named.toSorted());
});
