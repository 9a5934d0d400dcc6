/**
 * Joins the files of `npm start` and of each service into a few, because Node needs half a second of processor time to find
 * and read the 800 of one. The input is the build that production runs, including its entries; only the files are joined.
 * `npm start` and the tests run them; images and packages do not. Source: docs/decisions/0043.
 *
 * Usage: `node scripts/bundle.mjs DIRECTORY`
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const OWN_FILES = /[\\/](packages|services)[\\/][^\\/]+[\\/]dist[\\/].*\.js$/;
const LIBRARIES = /[\\/]node_modules[\\/]/;

/**
 * Writes `start.mjs`, `ingest.mjs`, `query.mjs` and `collector.mjs`, what several of them need, and source maps of our own code, which Node
 * reads with `--enable-source-maps`.
 * @param directory a folder in the repository, so that packages that are not joined are found
 */
export async function bundle(directory) {
  const input = { start: join(ROOT, 'packages', 'local-stack', 'dist', 'start', 'main.js') };
  for (const service of ['ingest', 'query', 'collector']) {
    input[service] = join(ROOT, 'services', service, 'dist', 'main.js');
  }
  const build = await rolldown({
    input,
    platform: 'node',
    // Native code that the services do not need.
    external: ['msgpackr-extract'],
    plugins: [ownFiles],
    // A service is not given the libraries of what it does not use.
    treeshake: { moduleSideEffects: [{ test: OWN_FILES, sideEffects: false }] },
    // What libraries in CommonJS know of their place.
    transform: { define: { __filename: 'import.meta.filename', __dirname: 'import.meta.dirname' } },
    onLog: (_, log) => {
      if (log.code === 'UNRESOLVED_IMPORT') throw new Error(log.message);
    },
  });
  const { output } = await build.generate({
    dir: directory,
    entryFileNames: '[name].mjs',
    chunkFileNames: '[name]-[hash].mjs',
    codeSplitting: { groups: [{ name: 'libraries', test: LIBRARIES, entriesAware: true }] },
    keepNames: true,
    sourcemap: true,
  });
  await build.close();
  await mkdir(directory, { recursive: true });
  await Promise.all(output.filter(isWanted).map((file) => writeFile(join(directory, file.fileName), textOf(file))));
}

/** The maps of libraries are large, and Node reads the map of a file when it reads the file. */
function isWanted({ fileName }) {
  return !(fileName.startsWith('libraries') && fileName.endsWith('.map'));
}

function textOf({ type, fileName, code, source }) {
  if (type === 'asset') return source;
  return fileName.startsWith('libraries') ? code.replace(/\n\/\/# sourceMappingURL=.*\n?$/, '\n') : code;
}

/** Our files look for migrations and the page next to themselves. */
const ownFiles = {
  name: 'own-files',
  load: {
    filter: { id: OWN_FILES },
    handler: async (path) => {
      const [code, map] = await Promise.all([path, `${path}.map`].map((file) => readFile(file, 'utf8')));
      return { code: code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href)), map };
    },
  },
};

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundle(process.argv[2]);
