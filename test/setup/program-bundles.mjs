/**
 * Joins the files of the programs of the tests that are processes of their own: tsx would compile and find all of them anew in each
 * of two dozen processes. Only the files are joined, and most packages are loaded as they are.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const OWN_FILES = /[\\/](packages|services)[\\/][^\\/]+[\\/]dist[\\/].*\.js$|[\\/]test[\\/].*\.ts$/;
/** test/program.ts starts them. */
const PROGRAMS = ['test/attack/main', 'test/emitter/closing', 'test/emitter/producer', 'test/faults/main'];
/** Of these there is one version alone, at the root. A joined `ioredis` would lack the names that the emitter imports on demand. */
const NOT_JOINED = [
  'msgpackr-extract',
  'bullmq',
  'bullmq-5',
  'ioredis',
  'undici',
  '@clickhouse/client',
  '@opentelemetry/*',
  'express',
  'fast-check',
  'jose',
];
/** What packages that are no ES modules find in their scope. */
const COMMON_JS = `import { createRequire as requireFrom } from 'node:module';
import { fileURLToPath as pathOfFile } from 'node:url';
const require = requireFrom(import.meta.url);
const __filename = pathOfFile(import.meta.url);`;

/** Writes `test/attack/main.mjs` and so on. @param directory a folder in the repository, so that packages are found */
export async function bundlePrograms(directory) {
  await build({
    entryPoints: Object.fromEntries(PROGRAMS.map((program) => [program, join(ROOT, `${program}.ts`)])),
    outdir: directory,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    keepNames: true,
    external: NOT_JOINED,
    banner: { js: COMMON_JS },
    plugins: [ownPlaces],
    logLevel: 'warning',
  });
}

/** Our files look for others next to themselves. */
const ownPlaces = {
  name: 'own-places',
  setup: ({ onLoad }) =>
    onLoad({ filter: OWN_FILES }, async ({ path }) => {
      const code = await readFile(path, 'utf8');
      const place = JSON.stringify(pathToFileURL(path).href);
      return { contents: code.replaceAll('import.meta.url', place), loader: path.endsWith('.ts') ? 'ts' : 'js' };
    }),
};
