/**
 * What is built can be moved and copied, and a package imports what CONTRIBUTING.md says that it does. The linter holds the imports to the package's own manifest, and files to
 * no cycle; this holds manifests and compiler to the table.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

/** A folder without a manifest is what a build has left of a package that was removed. */
const folders = ['packages', 'services']
  .flatMap((parent) => readdirSync(join(ROOT, parent)).map((name) => `${parent}/${name}`))
  .filter((folder) => existsSync(join(ROOT, folder, 'package.json')));

/** | `packages/api` | what it is | catalog, service | */
const rows = [...read('CONTRIBUTING.md').matchAll(/^\| `((?:packages|services)\/[\w-]+)` \|.*\| ([^|]+) \|$/gm)];
const table = new Map(rows.map(([, folder = '', imports = '']) => [folder, imports.split(/[^a-z-]+/)]));

it('every package has its row in the table of imports', () => {
  expect([...table.keys()].toSorted()).toEqual(folders.toSorted());
});

it.each(folders)('%s imports what its row says, and only packages above it', (folder) => {
  const above = [...table.keys()].slice(0, [...table.keys()].indexOf(folder));
  const named = above.filter((other) => table.get(folder)?.includes(other.replace('packages/', '')));
  const { dependencies, peerDependencies } = JSON.parse(read(`${folder}/package.json`));
  const declared = Object.keys({ ...dependencies, ...peerDependencies });
  const ours = declared.flatMap((name) => /^@meterline\/(.*)/.exec(name)?.[1] ?? []);
  expect(ours.map((name) => `packages/${name}`).toSorted()).toEqual(named.toSorted());
  // Compiler settings may hold comments, which JSON does not.
  const references = [...read(`${folder}/tsconfig.json`).matchAll(/"path": "([^"]+)"/g)];
  expect(references.map(([, path = '']) => join(folder, path)).toSorted()).toEqual(named.toSorted());
});

it("the images install the development dependencies of their packages: OpenTelemetry's SDK, and no tools", () => {
  const dockerfile = read('Dockerfile');
  expect(dockerfile).not.toContain('--omit=dev');
  const removed = /^RUN rm -r (.+) \\$/m.exec(dockerfile)?.[1]?.split(' ') ?? [];
  const installed = folders.filter((folder) => !removed.includes(folder));
  const names = installed.flatMap((folder) =>
    Object.keys(JSON.parse(read(`${folder}/package.json`)).devDependencies ?? {}),
  );
  expect(names).toContain('@opentelemetry/sdk-trace-node');
  expect(names.filter((name) => !name.startsWith('@opentelemetry/'))).toEqual([]);
});

const lockFile: { packages: Record<string, { resolved?: string; optionalDependencies?: Record<string, string> }> } =
  JSON.parse(read('package-lock.json'));

it('package-lock.json lists the optional packages of every platform, so that npm ci installs them anywhere', () => {
  const missing = Object.entries(lockFile.packages).flatMap(([path, { optionalDependencies = {} }]) => {
    const parents = [...path.matchAll(/node_modules\//g)].map(({ index }) => path.slice(0, index));
    const places = ['', ...parents, `${path}/`].map((parent) => `${parent}node_modules/`);
    return Object.keys(optionalDependencies).filter((name) => !places.some((place) => lockFile.packages[place + name]));
  });
  expect(missing).toEqual([]);
});

it('package-lock.json names no registry: npm uses the one that is configured', () => {
  const resolved = Object.values(lockFile.packages).flatMap((entry) => entry.resolved ?? []);
  expect(resolved.filter((target) => !/^(packages|services)\//.test(target))).toEqual([]);
});

it('no built file holds the path of the checkout: a copy would start the files of the other one', async () => {
  const holders: string[] = [];
  let files = 0;
  for (const group of ['packages', 'services']) {
    for (const name of await readdir(join(ROOT, group))) {
      const dist = join(ROOT, group, name, 'dist');
      for (const file of await readdir(dist, { recursive: true })) {
        if (!/\.(js|html|css|map)$/.test(file)) continue;
        files += 1;
        if ((await readFile(join(dist, file), 'utf8')).includes(ROOT)) holders.push(join(dist, file));
      }
    }
  }
  expect(files).toBeGreaterThan(100);
  expect(holders).toEqual([]);
});
