/** Builds the page into dist/page. `npm run dev` serves the page and forwards API requests to a running stack. */
import { defineConfig } from 'vite';

const API = process.env.METERLINE_API ?? 'http://127.0.0.1:8080';
/** Imports packages of this repository from their sources, because the page is built while those packages are compiled. */
const SOURCES = { find: /^@meterline\/(catalog|client)(?=\/|$)/, replacement: `${import.meta.dirname}/../$1/src` };

export default defineConfig({
  // The base is relative, because a proxy may serve the page under a subpath.
  base: './',
  resolve: { alias: [SOURCES] },
  build: {
    outDir: 'dist/page',
    emptyOutDir: true,
    // These are the first versions that support light-dark() in CSS.
    target: ['chrome123', 'firefox120', 'safari17.5'],
    // The content security policy does not allow data: URLs.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // A test limits the compressed size instead.
    chunkSizeWarningLimit: 1_000,
    rolldownOptions: {
      // "use client" has no meaning without server rendering.
      onLog: (level, log, next) => log.code !== 'MODULE_LEVEL_DIRECTIVE' && next(level, log),
    },
  },
  server: { proxy: { '/v0': API, '/page-settings.json': API } },
});
