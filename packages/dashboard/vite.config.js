/**
 * Builds the page into dist/page. `npm run dev` serves the page, and passes requests on to the API of a running stack.
 */
import { defineConfig } from 'vite';

const API = process.env.METERLINE_API ?? 'http://127.0.0.1:8080';
/** The packages of this repository that the page imports, from their sources: the page is built while they are compiled. */
const SOURCES = { find: /^@meterline\/(catalog|client)(?=\/|$)/, replacement: `${import.meta.dirname}/../$1/src` };

export default defineConfig({
  // Relative, because a proxy may serve the page under a path of its own.
  base: './',
  resolve: { alias: [SOURCES] },
  build: {
    outDir: 'dist/page',
    emptyOutDir: true,
    // The first versions with light-dark() in CSS.
    target: ['chrome123', 'firefox120', 'safari17.5'],
    // A data: URL would need its own exception in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // A test limits the compressed size.
    chunkSizeWarningLimit: 1_000,
    rolldownOptions: {
      // Without a server, "use client" has no meaning.
      onLog: (level, log, next) => log.code !== 'MODULE_LEVEL_DIRECTIVE' && next(level, log),
    },
  },
  server: { proxy: { '/v0': API, '/page-settings.json': API } },
});
