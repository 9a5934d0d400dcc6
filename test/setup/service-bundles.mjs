/**
 * Bundles each service into one file, because Node needs a second of processor time to find and read a service's 800
 * files, and the tests start about two hundred services. The input is the build that production runs, including its
 * entry; only the files are joined.
 */
import { mkdir, mkdtemp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Inside node_modules, so that packages that are not bundled are found. */
const CACHE = join(ROOT, 'node_modules', '.cache');
const OWN_FILES = /[\\/](packages|services)[\\/][^\\/]+[\\/]dist[\\/].*\.js$/;

/** @returns a new directory, which the caller removes, with `ingest.mjs`, `query.mjs` and `collector.mjs` */
export async function bundleServices() {
  await mkdir(CACHE, { recursive: true });
  const directory = await mkdtemp(join(CACHE, 'services-'));
  await build({
    entryPoints: { ingest: entryOf('ingest'), query: entryOf('query'), collector: entryOf('collector') },
    outdir: directory,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    keepNames: true,
    // Native code that the services do not need.
    external: ['msgpackr-extract'],
    banner: { js: "import{createRequire as requireFrom}from'node:module';const require=requireFrom(import.meta.url);" },
    plugins: [ownPlaces],
    logLevel: 'warning',
  });
  return directory;
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
      return { contents: code.replaceAll('import.meta.url', place), loader: 'js' };
    }),
};
