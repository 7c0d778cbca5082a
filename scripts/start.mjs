// `npm start`: from a fresh clone to a running local cluster. Arguments go to `remora dev` (npm start -- --nodes 5).
import { join } from 'node:path';
import { build } from './build.mjs';
import { install } from './install.mjs';
import { root, run } from './lib.mjs';

await install();
await build();
process.exitCode = await run(process.execPath, [
  join(root, 'packages/cli/bin/remora.mjs'),
  'dev',
  ...process.argv.slice(2),
]);
