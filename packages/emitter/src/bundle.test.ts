/** What a program loads of the emitter when it is bundled: the common part, and that of its address. */
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { beforeAll, expect, it } from '@jest/globals';
import { build } from 'esbuild';

/** Modules that are loaded on demand, by a part of their chunk's name. */
const ON_DEMAND = ['queue-transport', 'queue-topology', 'http-transport', 'spool', 'telemetry'] as const;
type OnDemand = (typeof ON_DEMAND)[number];

interface Size {
  readonly bytes: number;
  readonly compressed: number;
}

let loaded: (...onDemand: readonly OnDemand[]) => Size;
let inputs: readonly string[];

beforeAll(async () => {
  const { metafile, outputFiles } = await build({
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
  inputs = Object.keys(metafile.inputs);
  const chunks = Object.entries(metafile.outputs).map(([path, { imports }]) => ({
    name: path.slice(`${dirname(path)}/`.length),
    // Always together with the chunk, unlike what it imports on demand.
    needs: imports.filter(({ kind }) => kind === 'import-statement').map((needed) => needed.path),
    path,
  }));
  loaded = (...onDemand) => {
    const entries = chunks.filter(
      ({ name }) => name === 'index.js' || onDemand.some((module) => name.startsWith(module)),
    );
    expect(entries).toHaveLength(1 + onDemand.length);
    const paths = new Set(entries.map(({ path }) => path));
    for (const path of paths)
      for (const need of chunks.find((chunk) => chunk.path === path)?.needs ?? []) paths.add(need);
    const files = outputFiles.filter((file) => [...paths].some((path) => file.path.endsWith(join('/', path))));
    expect(files.length).toBeGreaterThan(entries.length);
    return {
      bytes: files.reduce((sum, { contents }) => sum + contents.length, 0),
      compressed: files.reduce((sum, { contents }) => sum + gzipSync(contents).length, 0),
    };
  };
});

it('has nothing of another package but the catalog', () => {
  expect(inputs.filter((path) => /node_modules/.test(path))).toEqual([]);
});

it('what is loaded for a collector is small', () => {
  const { bytes, compressed } = loaded('http-transport');
  expect(bytes).toBeLessThanOrEqual(20_000);
  expect(compressed).toBeLessThan(9_500);
});

it('what is loaded for a Redis is as small', () => {
  const { bytes, compressed } = loaded('queue-transport');
  expect(bytes).toBeLessThanOrEqual(20_000);
  expect(compressed).toBeLessThan(9_500);
});

it('Sentinels, Clusters and several queues are apart, and add little', () => {
  const { bytes } = loaded('queue-transport');
  expect(loaded('queue-transport', 'queue-topology').bytes - bytes).toBeLessThan(6_000);
});

it('a spool and metrics add little', () => {
  const { bytes } = loaded('http-transport');
  expect(loaded('http-transport', 'spool').bytes - bytes).toBeLessThan(5_000);
  expect(loaded('http-transport', 'telemetry').bytes - bytes).toBeLessThan(1_000);
});
