import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { build } from 'esbuild';

const HERE = new URL('./', import.meta.url);
const SOURCES = readdirSync(HERE).filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'));

describe('the client runs in a browser too', () => {
  it.each(SOURCES)('%s imports only itself and the catalog', (name) => {
    const source = readFileSync(new URL(name, HERE), 'utf8');
    const imported = [...source.matchAll(/(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g)].map(([, path]) => path);
    expect(imported.filter((path) => !/^(\.\/|@meterline\/catalog(\/api)?$)/.test(path ?? ''))).toEqual([]);
  });

  it('makes a bundle that asks for nothing of Node', async () => {
    const { metafile, outputFiles } = await build({
      entryPoints: [fileURLToPath(new URL('index.ts', HERE))],
      bundle: true,
      format: 'esm',
      metafile: true,
      minify: true,
      platform: 'browser',
      write: false,
    });
    const inputs = Object.values(metafile.inputs).flatMap(({ imports }) => imports);
    expect(inputs.filter(({ external, path }) => external || path.startsWith('node:'))).toEqual([]);
    // `import { z }` in the catalog, instead of `import * as z`, would bring zod's forty languages: 66 kB more.
    expect(gzipSync(outputFiles[0]?.contents ?? '').length).toBeLessThan(35_000);
    expect(outputFiles[0]?.text).not.toMatch(/\brequire\(|process\.env|\bBuffer\./);
  });
});
