/** Bundles the command into dist/package, the npm package `meterline`: `npm run pack:cli` packs it, and the image `cli` runs it. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vite';

const ROOT = join(import.meta.dirname, '../..');
const MIGRATIONS = 'clickhouse/migrations';
/** From their sources, so that nothing must be compiled first. */
const SOURCES = {
  find: /^@meterline\/(catalog|client|service|warehouse)(?=\/|$)/,
  replacement: `${ROOT}/packages/$1/src`,
};

/** Adds what is not code. The manifest names no dependency: the bundle has them. */
const files = {
  name: 'files',
  generateBundle() {
    const { version, description, license, type, engines } = JSON.parse(read('packages/cli/package.json'));
    const { repository, publishConfig } = JSON.parse(read('packages/client/package.json'));
    const manifest = {
      ...{ name: 'meterline', version, description, license },
      repository: { ...repository, directory: 'packages/cli' },
      ...{ publishConfig, type, engines, bin: { meterline: 'bin/meterline.js' } },
    };
    const migrations = readdirSync(join(ROOT, MIGRATIONS)).map((name) => `${MIGRATIONS}/${name}`);
    const emit = (fileName, source) => this.emitFile({ type: 'asset', fileName, source });
    emit('package.json', `${JSON.stringify(manifest, null, 2)}\n`);
    emit('bin/meterline.js', read('packages/cli/bin/meterline.js'));
    emit('README.md', read('packages/cli/README.md'));
    for (const name of ['LICENSE', ...migrations]) emit(name, read(name));
  },
};

/** The migrations are in the package, and a module of the bundle in its folder dist. */
const migrationsFolder = {
  name: 'migrations-folder',
  transform: {
    filter: { id: /warehouse\/src\/schema\/migrator\.ts$/ },
    handler(code) {
      const inCheckout = `../../../../${MIGRATIONS}/`;
      if (!code.includes(inCheckout)) this.error(`${inCheckout} is not named`);
      return code.replace(inCheckout, `../${MIGRATIONS}/`);
    },
  },
};

function read(file) {
  return readFileSync(join(ROOT, file), 'utf8');
}

export default defineConfig({
  plugins: [files, migrationsFolder],
  resolve: { alias: [SOURCES] },
  ssr: { noExternal: true },
  build: {
    ssr: 'src/main.ts',
    outDir: 'dist/package',
    emptyOutDir: true,
    target: 'node20.19',
    minify: true,
    license: { fileName: 'LICENSES.md' },
    chunkSizeWarningLimit: 2_000,
    rolldownOptions: {
      output: { entryFileNames: 'dist/[name].js', chunkFileNames: 'dist/[name]-[hash].js' },
    },
  },
});
