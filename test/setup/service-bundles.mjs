/**
 * Bundles each service into one file, because Node needs a second of processor time to find and read a service's 800
 * files, and the tests start about two hundred services. The input is the build that production runs, including its
 * entry; only the files are joined. So are the programs of the tests that are processes of their own: tsx would compile all their
 * files once more for each run.
 */
import { mkdir, mkdtemp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Inside node_modules, so that packages that are not bundled are found. */
const CACHE = join(ROOT, 'node_modules', '.cache');
const OWN_FILES = /[\\/](packages|services)[\\/][^\\/]+[\\/]dist[\\/].*\.js$|[\\/]test[\\/].*\.ts$/;
/** What files of packages that are no ES modules find in their scope. */
const COMMON_JS = `import { createRequire as requireFrom } from 'node:module';
import { fileURLToPath as pathOfFile } from 'node:url';
const require = requireFrom(import.meta.url);
const __filename = pathOfFile(import.meta.url);`;
/** test/program.ts starts them. */
const PROGRAMS = ['test/attack/main', 'test/emitter/closing', 'test/emitter/producer', 'test/faults/main'];

/** @returns a new directory, which the caller removes, with `ingest.mjs`, `query.mjs`, `collector.mjs`, `test/attack/main.mjs` etc. */
export async function bundleServices() {
  await mkdir(CACHE, { recursive: true });
  const directory = await mkdtemp(join(CACHE, 'services-'));
  const services = ['ingest', 'query', 'collector'].map((service) => [service, entryOf(service)]);
  const programs = PROGRAMS.map((program) => [program, join(ROOT, `${program}.ts`)]);
  await Promise.all([
    bundle(directory, services, []),
    // The emitter loads these when it needs them; a bundle of them would have a default export alone.
    bundle(directory, programs, ['bullmq', 'ioredis', 'undici', '@clickhouse/client', '@opentelemetry/*', 'express', 'fast-check', 'jose']),
  ]);
  return directory;
}

function bundle(directory, entries, external) {
  return build({
    entryPoints: Object.fromEntries(entries),
    outdir: directory,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    keepNames: true,
    // Native code that the services do not need.
    external: ['msgpackr-extract', ...external],
    banner: { js: COMMON_JS },
    plugins: [ownPlaces],
    logLevel: 'warning',
  });
}

function entryOf(service) {
  return join(ROOT, 'services', service, 'dist', 'main.js');
}

/** Our files look for migrations and the page next to themselves. */
const ownPlaces = {
  name: 'own-places',
  setup: ({ onLoad }) =>
    onLoad({ filter: OWN_FILES }, async ({ path }) => {
      const code = await readFile(path, 'utf8');
      const place = JSON.stringify(pathToFileURL(path).href);
      return { contents: code.replaceAll('import.meta.url', place), loader: path.endsWith('.ts') ? 'ts' : 'js' };
    }),
};
