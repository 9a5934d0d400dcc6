import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { expect, it } from '@jest/globals';

const HERE = new URL('./', import.meta.url);
const ONE_GET = `
  import { MeterlineClient } from ${JSON.stringify(fileURLToPath(new URL('index.ts', HERE)))};
  const client = new MeterlineClient({ baseUrl: location.origin, credential: 'mlk_…' });
  const { summary } = await client.metrics('acme', { startTime: new Date(0), endTime: new Date() });
  document.title = summary.totalCost;`;

/** A program that bundles the module above as a web page does, and prints what becomes of it. */
const BUNDLE = `
  import { build } from 'vite';
  const [one] = await build({
    configFile: false,
    logLevel: 'silent',
    plugins: [{ name: 'entry', resolveId: (id) => (id.endsWith('/entry') ? id : null), load: (id) => (id.endsWith('/entry') ? process.argv[1] : null) }],
    build: { write: false, minify: true, lib: { entry: 'entry', formats: ['es'] } },
  });
  const own = one.output.map(({ fileName }) => fileName);
  const imports = one.output.flatMap((chunk) => [...chunk.imports, ...chunk.dynamicImports]).filter((name) => !own.includes(name));
  console.log(JSON.stringify({ code: one.output.map(({ code }) => code).join(''), imports }));`;

it('the client makes a bundle for one GET that asks for nothing of Node, has no eval and at most 16 kB, compressed', async () => {
  const args = ['--input-type=module', '--eval', BUNDLE, ONE_GET];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 10_000_000 });
  const { code, imports } = JSON.parse(stdout);
  expect(imports).toEqual([]);
  expect(gzipSync(code).length).toBeLessThan(16_000);
  expect(code.length).toBeGreaterThan(1_000);
  expect(code).not.toMatch(/browser-external|\brequire\(|process\.env|\bBuffer\.|\beval\(|\bFunction\(/);
});
