// `npm run docs`: writes the pages of docs/reference that come from the code.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from '../build.mjs';
import { install } from '../install.mjs';
import { must, root } from '../lib.mjs';

await install();
await build();
const rewritten = [
  'packages/cli/test/docs/reference.test.ts',
  'test/http/locks.test.ts',
  'packages/protocol/test/wire-page.test.ts',
];
await must(
  'writing docs/reference',
  process.execPath,
  ['node_modules/vitest/vitest.mjs', 'run', '--project', 'unit', ...rewritten],
  {
    cwd: root,
    env: { ...process.env, REWRITE: '1' },
  },
);
const { SDK_PAGES, sdkPage } = await import('./sdk-page.mjs');
for (const page of SDK_PAGES) writeFileSync(join(root, page.path), await sdkPage(page));
