/** Links, paths and npm scripts in the Markdown files of the repository lead to files, headings and scripts that exist. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** With `--others`, a new file counts before it is added. */
const LIST = ['ls-files', '--cached', '--others', '--exclude-standard'];
const ALL_FILES = execFileSync('git', LIST, { cwd: ROOT, encoding: 'utf8' })
  .split('\n')
  .filter((file) => file !== '' && existsSync(join(ROOT, file)));
const FILES = ALL_FILES.filter((file) => file.endsWith('.md'));
const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8');

/** The text without code blocks, which have no links and no headings. */
const proseOf = (file: string) => textOf(file).replace(/^```.*?^```$/gms, '');

/** The anchors that GitHub gives to headings. */
function anchorsOf(file: string): string[] {
  const headings = [...proseOf(file).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading);
  return headings.map((heading) =>
    heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_\- ]/gu, '')
      .replaceAll(' ', '-'),
  );
}

function isBroken(file: string, link: string): boolean {
  const [path = '', anchor = ''] = link.split('#');
  const target = path === '' ? file : normalize(join(dirname(file), path));
  if (!existsSync(join(ROOT, target))) return true;
  return anchor !== '' && !anchorsOf(target).includes(anchor);
}

it('every link between documents leads to a file and a heading that exist', () => {
  const links = FILES.flatMap((file) =>
    [...proseOf(file).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => ({ file, link })),
  ).filter(({ link }) => !/^[a-z]+:/.test(link));
  expect(links.length).toBeGreaterThan(100);
  expect(links.filter(({ file, link }) => isBroken(file, link))).toEqual([]);
});

it('every npm script that a document names exists', () => {
  const named = FILES.flatMap((file) => [...textOf(file).matchAll(/npm run (?:-s |--silent )?([\w:-]+)/g)]);
  const manifests = ALL_FILES.filter((file) => /(^|\/)package\.json$/.test(file)).map(textOf);
  const unknown = named.flatMap(([, name = '']) =>
    manifests.some((text) => text.includes(`"${name}": "`)) ? [] : name,
  );
  expect(named.length).toBeGreaterThan(10);
  expect(unknown).toEqual([]);
});

it('every file, folder and test that the guides for contributors name exists', () => {
  const text = ['CONTRIBUTING.md', 'test/README.md'].map(textOf).join('\n');
  const named = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, name = '']) => name);
  const paths = named(/`((?!zod\/)[\w.-]+\/[\w./-]*\w)/g);
  const tests = named(/npm run jest -- ([\w./-]+)/g);
  expect([paths.length > 50, tests.length > 1]).toEqual([true, true]);
  expect(paths.filter((path) => !ALL_FILES.some((file) => file.includes(path)))).toEqual([]);
  expect(tests.filter((name) => !ALL_FILES.some((file) => /\.test\.ts$/.test(file) && file.includes(name)))).toEqual(
    [],
  );
});
