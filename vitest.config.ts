import { defineConfig } from 'vitest/config';
import { mutationPlugins } from './test/mutations/plugin.ts';
import { LongestFirst } from './test/support/longest-first.ts';

/** Tests of real processes. */
const SYSTEM = ['test/e2e/**/*.test.ts', 'test/etcd-diff/etcd-diff.test.ts'];
const LONG = '**/*.long.test.ts';
const LONG_SYSTEM = 'test/{e2e,chaos,etcd-diff,fixtures,soak}/**/*.long.test.ts';
const NO_PACKAGES = '**/node_modules/**';

/** Simulations drop most of what they make: with a larger nursery they take a tenth less time. */
const SIMULATING = ['--max-semi-space-size=64'];

/**
 * Real clusters, which wait more than they compute: three at a time, and after everything else. Workspace packages are
 * loaded as the global setup builds them, because to transform their sources takes seconds for each file.
 */
const CLUSTERS = {
  globalSetup: ['test/e2e/global-setup.ts'],
  testTimeout: 300_000,
  hookTimeout: 300_000,
  maxWorkers: 3,
  sequence: { groupOrder: 1 },
};

/** Workspace packages are loaded from their sources, never from a stale build. */
const FROM_SOURCES = { resolve: { conditions: ['source'] }, ssr: { resolve: { conditions: ['source'] } } };

export default defineConfig({
  plugins: mutationPlugins(process.env.MUTATION),
  test: {
    // Guards against hangs only: on a busy machine a test of a second takes half a minute.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
    pool: 'forks',
    sequence: { sequencer: LongestFirst },
    // What is built is loaded as it is: looking at each file again takes seconds.
    server: { deps: { external: [/\/\.remora\//, /\/packages\/[^/]+\/dist\//] } },
    // `npm test` runs `unit` and `system`, `npm run test:long` the other two.
    projects: [
      {
        extends: true,
        ...FROM_SOURCES,
        test: {
          name: 'unit',
          maxWorkers: '100%',
          // Nothing here changes what modules share: they are loaded once for all files that a process runs.
          isolate: false,
          setupFiles: ['test/support/real-globals.ts', 'test/support/random-seed.ts'],
          execArgv: SIMULATING,
          include: ['{packages/*/{src,test},examples,test}/**/*.test.ts'],
          exclude: [NO_PACKAGES, LONG, ...SYSTEM],
        },
      },
      {
        extends: true,
        test: { name: 'system', include: SYSTEM, exclude: [NO_PACKAGES, LONG], ...CLUSTERS },
      },
      {
        // A process for each file: those of planted bugs load many builds of a simulation, which stay in memory.
        extends: true,
        ...FROM_SOURCES,
        test: {
          name: 'long',
          testTimeout: 900_000,
          maxWorkers: '100%',
          execArgv: SIMULATING,
          include: [LONG],
          exclude: [NO_PACKAGES, LONG_SYSTEM],
        },
      },
      {
        extends: true,
        test: { name: 'long-system', include: [LONG_SYSTEM], ...CLUSTERS },
      },
    ],
  },
});
