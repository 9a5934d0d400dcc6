/** Builds the page into dist/page; `npm run dev` serves it, with the API of a running stack behind it. */
import { defineConfig } from 'vite';

/** The chart's code is asked for together with the page's, not once that has run. */
const preloadChunks = {
  name: 'preload-chunks',
  transformIndexHtml: {
    order: 'post',
    handler: (_html, { bundle }) =>
      Object.values(bundle ?? {})
        .filter((chunk) => chunk.type === 'chunk' && chunk.isDynamicEntry)
        .map(({ fileName }) => ({
          tag: 'link',
          attrs: { rel: 'modulepreload', crossorigin: true, href: `/${fileName}` },
          injectTo: 'head',
        })),
  },
};

export default defineConfig({
  plugins: [preloadChunks],
  build: {
    outDir: 'dist/page',
    emptyOutDir: true,
    // As new as light-dark() in CSS.
    target: ['chrome123', 'firefox120', 'safari17.5'],
    // A data: URL would need its own exception in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Of what was transferred compressed, a test knows the limit.
    chunkSizeWarningLimit: 1_000,
    rolldownOptions: {
      // "use client" means nothing here.
      onLog: (level, log, next) => log.code !== 'MODULE_LEVEL_DIRECTIVE' && next(level, log),
    },
  },
  server: { proxy: { '/v0': process.env.METERLINE_API ?? 'http://127.0.0.1:8080' } },
});
