// `pnpm chaos`: builds the program under test, compiles this one, and runs it. See docs/testing/chaos.md.
import { join } from 'node:path';
import { build } from '../../scripts/build.mjs';
import { must, root, tool } from '../../scripts/lib.mjs';

await build();
await must('build of the chaos tests', process.execPath, [tool('typescript', 'bin/tsc'), '-p', 'test/chaos']);
const { main } = await import('../dist/chaos/cli/main.js');
const args = process.argv.slice(2);
const given = { root, programs: join(root, 'test/dist/chaos') };
process.exit(await main(args, args[0] === 'upgrade' ? { ...given, releases: await releases() } : given));

async function releases() {
  const { layOutReleases, NAMES } = await import('./upgrade/releases.mjs');
  const { releasesIn } = await import('../dist/chaos/upgrade/releases.js');
  return releasesIn(await layOutReleases(), NAMES);
}
