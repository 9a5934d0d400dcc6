/** What is built can be moved and copied. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

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
