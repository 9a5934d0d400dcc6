/** Whether anything has changed since the last time, in a few milliseconds: nothing is read but the times and sizes of files. */
import { createHash } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

const FOLDERS = ['scripts', 'packages', 'services'];
const FILES = [
  'package.json',
  'package-lock.json',
  'node_modules/.package-lock.json',
  'tsconfig.json',
  'tsconfig.base.json',
];

/** Folders of what is made. */
const MADE = ['dist', 'node_modules'];

/**
 * Changes when a file does that the packages, the compiled and the joined files or the page are made of.
 * @param root of the repository
 */
export function stampOfInputs(root) {
  const files = [...FILES, ...FOLDERS.flatMap((folder) => inputsIn(root, folder))].map((file) => {
    const stats = statSync(join(root, file), { throwIfNoEntry: false });
    return `${file} ${stats?.mtimeMs} ${stats?.size}`;
  });
  return createHash('sha256').update(files.sort().join('\n')).digest('hex');
}

function inputsIn(root, folder) {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return MADE.includes(entry.name) ? [] : inputsIn(root, path);
    return entry.name.endsWith('.tsbuildinfo') ? [] : [path];
  });
}
