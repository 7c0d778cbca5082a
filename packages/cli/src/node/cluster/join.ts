import { type Clock, formatAddress, type Logger, type Random, ServiceError, type SpokenVersions } from '@remora/base';
import { MasterFinder, NodeAgent } from '@remora/master';
import { createDialer, createRpcRegistry, type JoinReply, type NodeDescriptor } from '@remora/protocol';
import { CommandError } from '../../exit-codes.ts';
import type { NodeOptions } from '../../node-options.ts';
import type { NodePlatform } from '../platform.ts';

/** Asks a running cluster for an id, until it answers or refuses. */
export async function joinCluster(
  options: NodeOptions,
  descriptor: NodeDescriptor,
  ports: {
    readonly clock: Clock;
    readonly random: Random;
    readonly logger: Logger;
    readonly platform: Pick<NodePlatform, 'connect'>;
    readonly versions: SpokenVersions;
    readonly signal: AbortSignal;
  },
): Promise<JoinReply> {
  const seeds = options.join.map(formatAddress);
  // No version is in force for a node without a cluster.
  const versions = { builds: ports.versions.builds };
  const self = { clusterId: '', nodeId: 0, incarnation: descriptor.incarnation, versions };
  const dialer = createDialer({
    ...ports,
    localNodeId: -1,
    connect: (target) => ports.platform.connect(target, self, () => undefined),
    registry: createRpcRegistry(),
    resolveAddress: () => undefined,
  });
  const agent = new NodeAgent(
    {
      ...ports,
      finder: new MasterFinder({ clock: ports.clock, dialer, seeds, masters: [], reachable: () => false }),
      report: () => ({
        space: { capacityBytes: 0, availableBytes: 0 },
        labels: {},
        hasMaster: false,
        ranges: [],
        results: [],
        conditions: [],
        authRevision: 0,
      }),
      changedSince: () => [],
      onTask() {},
      onView() {},
      onSplitPolicy() {},
      onClocks() {},
      onConditions() {},
      onAuth() {},
      onVersion() {},
      onRefused() {},
    },
    descriptor,
  );
  ports.logger.info({ seeds }, 'requesting a node id from the cluster');
  try {
    return await agent.requestId(ports.signal);
  } catch (error) {
    if (error instanceof ServiceError)
      throw new CommandError('dataDir', `the cluster refuses this node: ${error.message}`, { cause: error });
    throw error;
  } finally {
    dialer.close();
  }
}
