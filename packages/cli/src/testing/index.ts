/**
 * A node for tests, in the process of the test: `remora-server/testing`
 * (docs/decisions/0120-a-test-node-is-a-node.md).
 */
import type { TestCluster, TestClusterOptions } from './api.ts';
import { MemoryCluster } from './memory-cluster.ts';

export type {
  ExpiringSession,
  TestAddresses,
  TestClientOptions,
  TestCluster,
  TestClusterOptions,
  TestDuration,
} from './api.ts';

/**
 * Starts a cluster of one node in this process, in memory. Resolves when it serves.
 *
 * ```ts
 * const cluster = await startTestCluster();
 * const remora = await cluster.connect();
 * const held = await remora.lock('orders/42').acquire();
 * await cluster.expire(held);
 * await cluster.stop();
 * ```
 *
 * @throws RemoraError INVALID_ARGUMENT for invalid options.
 */
export function startTestCluster(options: TestClusterOptions = {}): Promise<TestCluster> {
  return MemoryCluster.start(options);
}
