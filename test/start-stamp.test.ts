/** Whether `npm start` sees that it has to install, compile or build something. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { stampOfInputs } from '../scripts/stamp.mjs';

let root: string;
let before: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'meterline-stamp-'));
  for (const folder of ['scripts', 'services', 'packages/access/src', 'packages/access/dist', 'node_modules/zod']) {
    await mkdir(join(root, folder), { recursive: true });
  }
  for (const file of ['package.json', 'node_modules/.package-lock.json', 'packages/access/src/key.ts']) {
    await writeFile(join(root, file), 'before');
  }
  before = stampOfInputs(root);
});
afterEach(() => rm(root, { recursive: true, force: true }));

it.each([
  ['a source file changes', () => writeFile(join(root, 'packages/access/src/key.ts'), 'after')],
  ['a source file comes', () => writeFile(join(root, 'packages/access/src/role.ts'), '')],
  ['a source file goes', () => rm(join(root, 'packages/access/src/key.ts'))],
  ['a script changes', () => writeFile(join(root, 'scripts/bundle.mjs'), '')],
  ['packages are installed', () => writeFile(join(root, 'node_modules/.package-lock.json'), 'after')],
  ['a manifest changes', () => writeFile(join(root, 'package.json'), 'after')],
  [
    'a package comes',
    () => mkdir(join(root, 'packages/new')).then(() => writeFile(join(root, 'packages/new/package.json'), '')),
  ],
])('is another when %s', async (_, change) => {
  await change();
  expect(stampOfInputs(root)).not.toBe(before);
});

it.each([
  ['nothing happens', async () => undefined],
  ['something is compiled for the first time', () => mkdir(join(root, 'services/dist'))],
  ['something is compiled', () => writeFile(join(root, 'packages/access/dist/key.js'), '')],
  ['the compiler notes what it has done', () => writeFile(join(root, 'packages/access/tsconfig.tsbuildinfo'), '')],
  ['a library writes a file', () => writeFile(join(root, 'node_modules/zod/cache'), '')],
])('is the same when %s', async (_, change) => {
  await change();
  expect(stampOfInputs(root)).toBe(before);
});
