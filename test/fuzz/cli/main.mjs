// `pnpm fuzz`: builds the fuzzer and runs it.
import { bundle, CORPUS_DIR, importFrom } from './load.mjs';

process.env.FUZZ_CORPUS = CORPUS_DIR;
const { dir, remove } = await bundle();
let code = 1;
try {
  const { main } = await importFrom(dir, 'main');
  code = await main(process.argv.slice(2), { workerFile: `${dir}/worker.mjs` });
} finally {
  remove();
}
process.exit(code);
