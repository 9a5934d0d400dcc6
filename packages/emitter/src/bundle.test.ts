import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { build } from 'esbuild';

it('a bundle has 20 kB beside the client of the queue, and 5 kB more with a spool', async () => {
  const { metafile } = await build({
    entryPoints: [fileURLToPath(new URL('index.ts', import.meta.url))],
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    minify: true,
    metafile: true,
    write: false,
    outdir: 'out',
    external: ['bullmq', 'ioredis', '@opentelemetry/api'],
  });
  const sizes = Object.entries(metafile.outputs).map(([path, { bytes }]) => ({
    isSpool: path.includes('/spool-'),
    bytes,
  }));
  const sum = (isSpool: boolean) =>
    sizes.filter((output) => output.isSpool === isSpool).reduce((total, { bytes }) => total + bytes, 0);
  expect(sum(false)).toBeLessThan(20_000);
  expect(sum(true)).toBeLessThan(5_000);
  expect(Object.keys(metafile.inputs).filter((path) => /node_modules/.test(path))).toEqual([]);
});
