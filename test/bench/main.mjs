// `pnpm bench`: builds what is to be measured and the benchmark itself, then runs it. See docs/benchmarks.md.
import { build } from '../../scripts/build.mjs';
import { must, root, tool } from '../../scripts/lib.mjs';

await build();
await must('build of the benchmark', process.execPath, [tool('typescript', 'bin/tsc'), '-p', 'test/bench']);
const { main } = await import('../dist/bench/cli.js');
process.exitCode = await main({ root, argv: process.argv.slice(2) });
