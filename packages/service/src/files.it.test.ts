import { spawnSync } from 'node:child_process';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { beforeEach, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK, DEFAULT_PRICE_BOOK_FILE } from '@meterline/catalog';
import { testFolder } from '../../../test/harness/test-folder.js';
import { loadPriceBook, openPriceBook, writePrivateText } from './files.js';

const folder = testFolder('each test');
let path: string;
beforeEach(() => {
  path = folder('file.json');
});

it('a price book is loaded from the file, or is the example book without a file', async () => {
  expect(await loadPriceBook(undefined)).toBe(DEFAULT_PRICE_BOOK);
  await writeFile(path, JSON.stringify({ ...DEFAULT_PRICE_BOOK_FILE, version: 9 }));
  expect(await loadPriceBook(path)).toMatchObject({ version: 9, canonicalText: DEFAULT_PRICE_BOOK.canonicalText });
});

const WITHOUT_PRICES = JSON.stringify({ ...DEFAULT_PRICE_BOOK_FILE, prices: [] });

it.each([
  ['is not there', undefined, 'ENOENT'],
  ['is no JSON', 'version: 1', 'not valid JSON'],
  ['is no book', '[]', 'expected object'],
  ['lacks prices', WITHOUT_PRICES, 'no price for sandbox_compute_runtime_gbs'],
])('a price book that %s is named, as the caller calls it, with the reason', async (_, text, reason) => {
  if (text !== undefined) await writeFile(path, text);
  const message = (label: string) => expect.stringMatching(new RegExp(`^${label} cannot be used: .*${reason}`, 's'));
  const named = { name: 'PriceBookError', message: message(`PRICE_BOOK ${path}`), cause: expect.anything() };
  await expect(loadPriceBook(path)).rejects.toMatchObject(named);
  await expect(openPriceBook({ PRICE_BOOK: path })).rejects.toMatchObject({
    name: 'StartError',
    message: named.message,
  });
  await expect(loadPriceBook(path, '--book')).rejects.toMatchObject({ message: message('--book') });
});

it('a private file is readable only by its owner, and is replaced atomically', async () => {
  await writePrivateText(path, 'before, and longer');
  await writePrivateText(path, 'é');
  expect(await readFile(path, 'utf8')).toBe('é');
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(await readdir(folder())).toEqual(['file.json']);
});

/** In blocks of 512 bytes or of 1 kB, as the shell has it. Like a full disk, the limit cuts a write short and refuses the next. */
const MAX_BLOCKS = 8;

/** In a process that can write short files only. @returns the code of the error, or `written` */
function writeWithoutRoom(length: number): string {
  // The limit comes with a signal, which a full disk does not send.
  const program = `
    process.on('SIGXFSZ', () => undefined);
    import { writePrivateText } from ${JSON.stringify(new URL('../dist/files.js', import.meta.url).href)};
    await writePrivateText(process.argv[1], 'x'.repeat(${length})).then(
      () => console.log('written'),
      (error) => console.log(error.code),
    );`;
  const command = [process.execPath, '--input-type=module', '-e', program, path];
  const limited = ['-c', `ulimit -f ${MAX_BLOCKS}; exec "$@"`, 'sh', ...command];
  const { stdout, stderr } = spawnSync('sh', limited, { encoding: 'utf8' });
  return stdout.trim() || stderr;
}

it('a private file that does not fit on the disk stays unchanged, and leaves no temp file', async () => {
  expect(writeWithoutRoom(10)).toBe('written');
  expect(writeWithoutRoom(100_000)).toBe('EFBIG');
  expect(await readFile(path, 'utf8')).toBe('xxxxxxxxxx');
  expect(await readdir(folder())).toEqual(['file.json']);
});
