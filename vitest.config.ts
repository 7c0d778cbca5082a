import { defineConfig } from 'vitest/config';
import { mutationPlugins } from './test/mutations/plugin.ts';
import { LongestFirst } from './test/support/longest-first.ts';

const SYSTEM = [
  'test/e2e/**/*.test.ts',
  'test/chaos/*.test.ts',
  'test/etcd-diff/etcd-diff.test.ts',
  'test/fixtures/**/*.test.ts',
  'test/soak/growth.test.ts',
  'test/soak/overload.test.ts',
  'test/soak/nodes/nodes.test.ts',
];

/** Each of them loads many builds of a simulation, and these stay in its process. */
const PLANTED = ['test/sim/!(common)/planted/*.test.ts'];

/** Simulations drop most of what they make: with a larger nursery they take a tenth less time. */
const SIMULATING = ['--max-semi-space-size=64'];

// Workspace packages are tested from their sources (export condition "source"), never from a stale build.
export default defineConfig({
  plugins: mutationPlugins(process.env.MUTATION),
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source'] } },
  test: {
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: 'forks',
    sequence: { sequencer: LongestFirst },
    // Simulations that tests have built are programs as they are: looking at each of them again takes seconds.
    server: { deps: { external: [/\/\.remora\//] } },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          maxWorkers: '100%',
          // Nothing here changes what modules share: they are loaded once for all files that a process runs.
          isolate: false,
          execArgv: SIMULATING,
          include: ['packages/*/src/**/*.test.ts', 'packages/*/test/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: ['**/node_modules/**', ...SYSTEM, ...PLANTED],
        },
      },
      {
        extends: true,
        test: {
          name: 'planted',
          maxWorkers: '100%',
          execArgv: SIMULATING,
          include: PLANTED,
        },
      },
      {
        // Real clusters, which wait more than they compute: two at a time, and after everything else.
        extends: true,
        test: {
          name: 'system',
          include: SYSTEM,
          globalSetup: ['test/e2e/global-setup.ts'],
          testTimeout: 120_000,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
