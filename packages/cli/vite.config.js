/** Bundles the command into dist/package, the npm package `meterline`. `npm run pack:cli` packs the folder, and the image `cli` runs it. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vite';

const ROOT = join(import.meta.dirname, '../..');
const MIGRATIONS = 'clickhouse/migrations/';
/** Resolves workspace packages to their sources, so that the bundle does not need compiled packages. */
const SOURCES = {
  find: /^@meterline\/(catalog|client|service|warehouse)(?=\/|$)/,
  replacement: `${ROOT}/packages/$1/src`,
};
const read = (file) => readFileSync(join(ROOT, file), 'utf8');

/** Adds the files that are not code. The manifest has no dependencies, because the bundle contains them. */
function generateBundle() {
  const { version, description, license, type, engines, bin } = JSON.parse(read('packages/cli/package.json'));
  const { repository, publishConfig } = JSON.parse(read('packages/client/package.json'));
  const origin = { repository: { ...repository, directory: 'packages/cli' }, publishConfig };
  const manifest = { name: 'meterline', version, description, license, type, engines, bin, ...origin };
  const emit = (fileName, source) => this.emitFile({ type: 'asset', fileName, source });
  emit('package.json', `${JSON.stringify(manifest, null, 2)}\n`);
  for (const name of ['README.md', 'bin/meterline.js']) emit(name, read(`packages/cli/${name}`));
  const migrations = readdirSync(join(ROOT, MIGRATIONS)).map((name) => MIGRATIONS + name);
  for (const name of ['LICENSE', ...migrations]) emit(name, read(name));
}

/** Adapts the path from the migrator to the migrations, because bundled modules are in the folder dist of the package. */
function transform(code, id) {
  if (!id.endsWith('/warehouse/src/schema/migrator.ts')) return undefined;
  const moved = code.replace(`../../../../${MIGRATIONS}`, `../${MIGRATIONS}`);
  return moved === code ? this.error(`expected the path ../../../../${MIGRATIONS} in this module`) : moved;
}

export default defineConfig({
  plugins: [{ name: 'package', generateBundle, transform }],
  resolve: { alias: [SOURCES] },
  ssr: { noExternal: true },
  build: {
    ssr: 'src/main.ts',
    outDir: 'dist/package',
    target: 'node20.19',
    minify: true,
    license: { fileName: 'LICENSES.md' },
    chunkSizeWarningLimit: 2_000,
    rolldownOptions: { output: { entryFileNames: 'dist/[name].js', chunkFileNames: 'dist/[name]-[hash].js' } },
  },
});
