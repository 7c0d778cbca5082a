import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Files that take ten seconds or more, the longest first, by project. Files that start last are then short, and no
 * processor is idle at the end. A fresh clone has no recorded durations, and a file's size says little.
 */
const LONG = [
  'test/sim/cluster/planted/',
  'test/sim/cluster/seeds/',
  'test/sim/',
  'packages/master/test/cases/',
  'test/sdk/lost-and-late.property.test.ts',
  'test/fuzz/',
  'packages/protocol/test/messages.property.test.ts',
  'packages/raft/src/core/raft.property.test.ts',
  'test/chaos/',
  'test/e2e/release.long.test.ts',
  'test/e2e/docs/',
  'test/e2e/cli.test.ts',
  'test/e2e/languages/',
  'test/e2e/health-causes.test.ts',
  'test/e2e/strangers.test.ts',
  'test/e2e/tls.test.ts',
  'test/e2e/etcd-auth.test.ts',
  'test/e2e/addresses.test.ts',
  'test/e2e/etcdctl-commands.test.ts',
  'test/e2e/sdk-log-ins.test.ts',
  'test/e2e/auth-table.test.ts',
  'test/e2e/guarded-commands.long.test.ts',
  'test/e2e/admin.test.ts',
  'test/etcd-diff/',
  'test/soak/nodes/',
  'test/e2e/lost-majority.long.test.ts',
  'test/e2e/admin-steering.test.ts',
  'test/fixtures/',
  'test/e2e/ranges.test.ts',
  'test/soak/',
];

/** Starts with the files that take longest. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const groupOf = ({ project }: TestSpecification): number => project.config.sequence.groupOrder;
    const rankOf = ({ moduleId }: TestSpecification): number => {
      const path = relative(this.ctx.config.root, moduleId);
      const rank = LONG.findIndex((start) => path.startsWith(start));
      return rank === -1 ? LONG.length : rank;
    };
    const sorted = await super.sort(files);
    return sorted.sort((a, b) => groupOf(a) - groupOf(b) || rankOf(a) - rankOf(b));
  }
}
