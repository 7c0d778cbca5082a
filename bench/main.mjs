// `pnpm bench`, and `pnpm bench raft`, `ranges`, `locks` and `etcd`: builds what is to be measured and the benchmark
// itself, then runs it. See docs/benchmarks.md.
import { build } from '../scripts/build.mjs';
import { must, root, tool } from '../scripts/lib.mjs';

await build();
await must('build of the benchmark', process.execPath, [tool('typescript', 'bin/tsc'), '-p', 'bench']);
const argv = process.argv.slice(2).filter((argument) => argument !== '--');
const cases = await import('./dist/bench/case-cli.js');
const [family] = argv;
process.exitCode = cases.isFamily(family)
  ? await cases.main({ root, family, argv: argv.slice(1) })
  : await (await import('./dist/bench/cli.js')).main({ root, argv });
