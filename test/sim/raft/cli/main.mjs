// `pnpm sim:raft`: builds the simulation, with a planted bug if one is named, and runs it.
import { bundle, importFrom, STATE_DIR } from './load.mjs';

const args = process.argv.slice(2);
const at = args.indexOf('--mutation');
const mutation = at >= 0 ? args[at + 1] : undefined;
const { dir, remove } = await bundle(mutation);
let code = 1;
try {
  const { main } = await importFrom(dir, 'main');
  code = await main(args, { workerFile: `${dir}/worker.mjs`, stateDir: STATE_DIR });
} finally {
  remove();
}
process.exit(code);
