import { defineConfig } from 'vite';

/** Where `vite dev` finds the HTTP API of a running node. */
const NODE = process.env.REMORA_CONSOLE_NODE ?? 'http://127.0.0.1:7482';

export default defineConfig({
  base: '/console/',
  // `jsxDev` would put the paths of the sources into the page.
  esbuild: { jsx: 'automatic', jsxDev: false, jsxImportSource: 'preact' },
  build: {
    outDir: 'dist/static',
    target: 'es2022',
    // The policy of the console allows no inline scripts, styles or fonts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { '/v1': { target: NODE, changeOrigin: true } } },
});
