import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { build } from 'esbuild';

const HERE = new URL('./', import.meta.url);
const SOURCES = readdirSync(HERE, { encoding: 'utf8', recursive: true }).filter(
  (name) => name.endsWith('.ts') && !name.endsWith('.test.ts'),
);

const ONE_GET = `
  import { MeterlineClient } from './index.js';
  const client = new MeterlineClient({ baseUrl: location.origin, credential: 'mlk_…' });
  const { summary } = await client.metrics('acme', { startTime: new Date(0), endTime: new Date() });
  document.title = summary.totalCost;`;

describe('the client runs in a browser too', () => {
  it.each(SOURCES)('%s imports only itself and the catalog', (name) => {
    const source = readFileSync(new URL(name, HERE), 'utf8');
    const imported = [...source.matchAll(/(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g)].map(([, path]) => path);
    expect(
      imported.filter((path) => !/^(\.{1,2}\/|@meterline\/catalog(\/(answers|api|questions))?$)/.test(path ?? '')),
    ).toEqual([]);
  });

  it('makes a bundle for one GET that asks for nothing of Node, has no eval and at most 15 kB, compressed', async () => {
    const { metafile, outputFiles } = await build({
      stdin: { contents: ONE_GET, resolveDir: fileURLToPath(HERE), loader: 'ts' },
      bundle: true,
      format: 'esm',
      metafile: true,
      minify: true,
      platform: 'browser',
      write: false,
    });
    const inputs = Object.values(metafile.inputs).flatMap(({ imports }) => imports);
    expect(inputs.filter(({ external, path }) => external || path.startsWith('node:'))).toEqual([]);
    expect(gzipSync(outputFiles[0]?.contents ?? '').length).toBeLessThan(15_000);
    expect(outputFiles[0]?.text).not.toMatch(/\brequire\(|process\.env|\bBuffer\.|\beval\(|\bFunction\(/);
  });
});
