/** Keeps out of identifiers and comments the words that have a standard term, and phrases that need a second reading. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SOURCE = /^[^/]+\/src\/.*(?<!\.(test|it|long))\.tsx?$/;
/** Texts may have them: codes such as the outcome `refused` are part of the contract. */
const TEXT = /'[^'\n]*'|`[^`]*`/g;
const WORDS =
  /answer|(?<!ECONN)refus(e|al|ing)|anew\b|\bwhoever\b|patience|verdict|rehears|lifeline|anyhow|\basked\b|\bfor ever\b|\bso many\b|\b(is|are) told\b|\bunder way\b/gi;

it.each(['packages', 'services'])('sources in %s use standard terms', (folder) => {
  const files = readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: 'utf8' }).filter((file) =>
    SOURCE.test(file),
  );
  const found = files.flatMap((file) => {
    const source = readFileSync(`${ROOT}${folder}/${file}`, 'utf8').replace(TEXT, '');
    return (source.match(WORDS) ?? []).map((word) => `${file}: ${word}`);
  });
  expect(files.length).toBeGreaterThan(40);
  expect(found).toEqual([]);
});
