// `pnpm chaos`: builds the program under test, compiles this one, and runs it. See docs/testing/chaos.md.
import { join } from 'node:path';
import { build } from '../../scripts/build.mjs';
import { must, root, tool } from '../../scripts/lib.mjs';

await build();
await must('build of the chaos tests', process.execPath, [tool('typescript', 'bin/tsc'), '-p', 'test/chaos']);
const { main } = await import('../dist/chaos/cli/main.js');
process.exit(await main(process.argv.slice(2), { root, programs: join(root, 'test/dist/chaos') }));
