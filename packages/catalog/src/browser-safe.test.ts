import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';

const HERE = new URL('./', import.meta.url);
const SOURCES = readdirSync(HERE, { encoding: 'utf8', recursive: true }).filter(
  (name) => name.endsWith('.ts') && !name.endsWith('.test.ts'),
);

it.each(SOURCES)(
  '%s runs in a browser too: it imports only itself, zod, date-fns and big.js, and no global of Node',
  (name) => {
    const source = readFileSync(new URL(name, HERE), 'utf8');
    const imported = [...source.matchAll(/(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g)].map(([, path = '']) => path);
    const known = /^(\.{1,2}\/|zod(?:\/mini)?$|date-fns\/|@date-fns\/utc\/|big\.js$)/;
    expect(imported.filter((path) => !known.test(path))).toEqual([]);
    expect(source).not.toMatch(/\b(process\.|Buffer\b|require\(|__dirname|globalThis\.process)/);
  },
);
