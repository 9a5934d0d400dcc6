/** Links between the Markdown files of the repository lead to files and headings that exist. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** With `--others`, a new file counts before it is added. */
const LIST = ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'];
const FILES = execFileSync('git', LIST, { cwd: ROOT, encoding: 'utf8' })
  .split('\n')
  .filter((file) => file !== '' && existsSync(join(ROOT, file)));

/** The text without code blocks, which have no links and no headings. */
const proseOf = (file: string) => readFileSync(join(ROOT, file), 'utf8').replace(/^```.*?^```$/gms, '');

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
