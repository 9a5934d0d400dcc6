import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';

const HERE = new URL('./', import.meta.url);
const SOURCES = readdirSync(HERE, { encoding: 'utf8', recursive: true }).filter(
  (name) => name.endsWith('.ts') && !name.endsWith('.test.ts'),
);

describe('the catalog runs in a browser too', () => {
  it.each(SOURCES)('%s imports only itself, zod, date-fns and big.js', (name) => {
    const source = readFileSync(new URL(name, HERE), 'utf8');
    const imported = [...source.matchAll(/(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g)].map(([, path]) => path);
    const foreign = imported.filter(
      (path) => !/^(\.{1,2}\/|zod(?:\/mini)?$|date-fns\/|@date-fns\/utc\/|big\.js$)/.test(path ?? ''),
    );
    expect(foreign).toEqual([]);
  });

  it.each(SOURCES)('%s uses no global of Node', (name) => {
    const source = readFileSync(new URL(name, HERE), 'utf8');
    expect(source).not.toMatch(/\b(process\.|Buffer\b|require\(|__dirname|globalThis\.process)/);
  });
});
