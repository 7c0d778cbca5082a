// `npm start`: from a fresh clone to a running local cluster. Arguments go to `remora dev` (npm start -- --nodes 5).
//
// S1. The cluster ends with whoever started it. npm runs this through a shell, and a signal to npm alone ends npm and
//     the shell without a word to this process: that its parent is another one then is all there is to see.
// S2. The cluster's supervisor holds a channel to this process, and stops when that closes, even on SIGKILL.
import { join } from 'node:path';
import { build } from './build.mjs';
import { install } from './install.mjs';
import { root, run } from './lib.mjs';

const PARENT_CHECK_MS = 500;

if (process.env.npm_lifecycle_event !== undefined) stopWithParent();
await install();
await build();
process.exitCode = await run(
  process.execPath,
  [join(root, 'dist/program/bin/remora.mjs'), 'dev', ...process.argv.slice(2)],
  { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] },
);

/** S1. As a signal to this process, which passes it on to what it runs. */
function stopWithParent() {
  const parent = process.ppid;
  const check = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(check);
    process.kill(process.pid, 'SIGTERM');
  }, PARENT_CHECK_MS);
  check.unref();
}
