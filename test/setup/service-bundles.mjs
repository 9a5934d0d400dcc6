/**
 * The services as one file each, because Node takes a second of processor time to find and read the 800 files of one, and
 * the tests start some two hundred. They are made from the build that production runs, entry included: only the files
 * are joined.
 */
import { mkdir, mkdtemp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Below node_modules, where packages that stay outside are found. */
const CACHE = join(ROOT, 'node_modules', '.cache');
const OWN_FILES = /[\\/](packages|services)[\\/][^\\/]+[\\/]dist[\\/].*\.js$/;

/** @returns a new directory, which the caller removes, with `ingest.js` and `query.js` */
export async function bundleServices() {
  await mkdir(CACHE, { recursive: true });
  const directory = await mkdtemp(join(CACHE, 'services-'));
  await build({
    entryPoints: { ingest: entryOf('ingest'), query: entryOf('query') },
    outdir: directory,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    keepNames: true,
    // Native code, or loaded by nothing that the services do.
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

/** Our files find migrations and the page beside themselves. */
const ownPlaces = {
  name: 'own-places',
  setup: ({ onLoad }) =>
    onLoad({ filter: OWN_FILES }, async ({ path }) => {
      const code = await readFile(path, 'utf8');
      const place = JSON.stringify(pathToFileURL(path).href);
      return { contents: code.replaceAll('import.meta.url', place), loader: 'js' };
    }),
};
