// `pnpm bench` and `pnpm bench raft`: builds what is to be measured and the benchmark itself, then runs it. See
// docs/benchmarks.md.
import { build } from '../../scripts/build.mjs';
import { must, root, tool } from '../../scripts/lib.mjs';

await build();
await must('build of the benchmark', process.execPath, [tool('typescript', 'bin/tsc'), '-p', 'test/bench']);
const argv = process.argv.slice(2).filter((argument) => argument !== '--');
const raft = argv[0] === 'raft';
const { main } = await (raft ? import('../dist/bench/raft/cli.js') : import('../dist/bench/cli.js'));
process.exitCode = await main({ root, argv: raft ? argv.slice(1) : argv });
