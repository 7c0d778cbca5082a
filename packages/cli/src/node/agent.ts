/** The node's side of the heartbeats with the masters: what it reports, and what it does with their answers. */
import type { KnownAuth } from '@remora/auth';
import type { Store } from '@remora/dataserver';
import { type ClockComparison, type FoundingPlan, type MasterFinder, NodeAgent } from '@remora/master';
import type { ClusterView, NodeDescriptor } from '@remora/protocol';
import { CommandError } from '../exit-codes.ts';
import { labelsOf, type NodeOptions } from '../node-options.ts';
import type { MinuteReporter } from './activity/minute-reporter.ts';
import type { ExposureCheck } from './cluster/exposure-check.ts';
import type { KnownCluster } from './cluster/known-cluster.ts';
import type { KnownVersion } from './cluster/known-version.ts';
import type { NodeHealth } from './health.ts';
import type { MasterReplica } from './master-replica.ts';
import type { NodePlatform } from './platform.ts';
import { performTask } from './tasks.ts';

export interface AgentParts extends Pick<NodePlatform, 'clock' | 'random' | 'logger'> {
  readonly options: NodeOptions;
  readonly platform: NodePlatform;
  readonly finder: MasterFinder;
  readonly cluster: KnownCluster;
  readonly auth: KnownAuth;
  readonly versions: KnownVersion;
  readonly exposure: ExposureCheck;
  readonly clocks: ClockComparison;
  readonly store: Store | undefined;
  readonly seat: MasterReplica;
  readonly health: NodeHealth;
  readonly founding: FoundingPlan | undefined;
  readonly activity: MinuteReporter;
  /** Called with the masters' first answer in this life. */
  readonly onFirstView: (view: ClusterView) => void;
  /** The node must end. */
  readonly onFailure: (error: unknown) => void;
}

export function createAgent(descriptor: NodeDescriptor, parts: AgentParts): NodeAgent {
  const { finder, clock, random, logger, options, platform, cluster, auth, versions, exposure, clocks } = parts;
  const { store, seat, health, founding, activity, onFirstView, onFailure } = parts;
  return new NodeAgent(
    {
      finder,
      clock,
      random,
      logger,
      report: (complete) => ({
        space: platform.space(),
        labels: labelsOf(options),
        hasMaster: seat.master !== undefined,
        conditions: health.own(),
        authRevision: auth.revision,
        versions: versions.report,
        ...activity.forHeartbeat(!complete),
        ...(founding !== undefined && !cluster.isFounded && { founding: founding.kind }),
        ...(store?.heartbeat.report(complete) ?? { ranges: [], results: [] }),
      }),
      changedSince: ({ ranges }) => store?.changedSince(ranges) ?? [],
      onTask: (task) => performTask(task, { store, seat }, { logger, onFailure }),
      onView: (view, incarnations) => {
        const isFirst = cluster.view === undefined;
        cluster.learn(view, incarnations);
        if (isFirst) onFirstView(view);
        exposure.look();
      },
      onAuth: (image, sentMs) => auth.learn(image, sentMs),
      onVersion: (version) => versions.learn(version),
      onSplitPolicy: (policy) => store?.splitBy(policy),
      onClocks: (reading) => clocks.observe(reading),
      onConditions: (conditions) => health.learn(conditions),
      // The cluster refuses this node: continuing could only do harm.
      onRefused: (cause) =>
        onFailure(new CommandError('dataDir', `the cluster refuses this node: ${cause.message}`, { cause })),
    },
    descriptor,
  );
}
