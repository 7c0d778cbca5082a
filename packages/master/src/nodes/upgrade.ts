/**
 * Which versions the nodes can write, and whether a newer one may come into force (docs/decisions/0100).
 *
 * UP1. A version comes into force only if every node that was not removed is up, and has reported to this leader that
 *      its build writes that version. A node that is away may come back with another build.
 * UP2. A build is never told to write a version that it cannot: the version in force is at most the lowest of theirs.
 *      So any node may be replaced by an older build that writes the version in force.
 * UP3. A new cluster begins with the highest version that all nodes can write that have reported. Later, only an
 *      operator raises the version: until then, there is a way back.
 */
import { type ClusterVersion, FIRST_VERSION, ServiceError, versionText } from '@remora/base';
import {
  type HealthCondition,
  healthCondition,
  type NodeDescriptor,
  type NodeHeartbeat,
  type UpgradeStatus,
} from '@remora/protocol';
import type { MasterState } from '../metadata/master-state.ts';
import type { Liveness } from '../scheduling/cluster-model.ts';

export interface UpgradeDeps {
  readonly state: Pick<MasterState, 'clusterVersion' | 'nodes' | 'isRemoved'>;
  /** The last heartbeat of a node to this leader. */
  readonly heard: (nodeId: number) => NodeHeartbeat | undefined;
  readonly stateOf: (nodeId: number) => Liveness;
}

/** The text of a condition names at most this many nodes. */
const NAMED_MAX = 10;

export class Upgrade {
  readonly #deps: UpgradeDeps;

  constructor(deps: UpgradeDeps) {
    this.#deps = deps;
  }

  status(): UpgradeStatus {
    const { state, heard, stateOf } = this.#deps;
    const newest = this.#newest();
    const nodes = this.#nodes().map(({ nodeId, name, version: build }) => {
      const { min = 0, max = 0, inForce = 0 } = heard(nodeId)?.versions ?? {};
      return { nodeId, name, build, state: stateOf(nodeId), min, max, inForce };
    });
    return { inForce: state.clusterVersion, newest, nodes, blockers: this.#blockers(newest) };
  }

  /** UP1. Why this version cannot come into force now; undefined if it can. */
  refusal(version: ClusterVersion): ServiceError | undefined {
    const { clusterVersion } = this.#deps.state;
    if (version < clusterVersion) {
      const message = `the cluster is at version ${versionText(clusterVersion)}, and a version never decreases`;
      return new ServiceError('INVALID_ARGUMENT', message);
    }
    const [first, ...more] = version === clusterVersion ? [] : this.#blockers(version);
    if (first === undefined) return undefined;
    const others = more.length === 0 ? '' : `; and ${more.length} more: run remora admin upgrade status`;
    const message = `version ${versionText(version)} cannot come into force yet: ${first}${others}`;
    return new ServiceError('INVALID_ARGUMENT', message);
  }

  /** UP3. The version of a new cluster. */
  founding(): ClusterVersion {
    const { heard, state } = this.#deps;
    const known = this.#nodes().flatMap(({ nodeId }) => heard(nodeId)?.versions?.max ?? []);
    return known.length === 0 ? state.clusterVersion : Math.max(state.clusterVersion, Math.min(...known));
  }

  /** What operators should know of an upgrade that has begun and not ended. */
  conditions(): readonly HealthCondition[] {
    const { clusterVersion } = this.#deps.state;
    const newest = this.#newest();
    if (newest <= clusterVersion) return [];
    const [now, later] = [versionText(clusterVersion), versionText(newest)];
    const behind = this.#nodes().filter(({ nodeId }) => this.#maxOf(nodeId) < newest);
    if (behind.length === 0) {
      const text = `all nodes can write version ${later}, and the cluster is still at ${now}: when no node has to go back, run remora admin upgrade finalize`;
      return [healthCondition('upgradeNotFinalized', {}, text)];
    }
    const names = behind.slice(0, NAMED_MAX).map(({ name }) => name);
    const more = behind.length > names.length ? ` and ${behind.length - names.length} more` : '';
    const text = `some nodes can write version ${later}, and not yet ${names.join(', ')}${more}: install Remora ${later} there, or the earlier release on the others`;
    return [healthCondition('mixedVersions', {}, text)];
  }

  #nodes(): readonly NodeDescriptor[] {
    const { state } = this.#deps;
    return state.nodes().filter(({ nodeId }) => !state.isRemoved(nodeId));
  }

  #maxOf(nodeId: number): ClusterVersion {
    return this.#deps.heard(nodeId)?.versions?.max ?? FIRST_VERSION;
  }

  /** The newest version that any node can write. */
  #newest(): ClusterVersion {
    return Math.max(this.#deps.state.clusterVersion, ...this.#nodes().map(({ nodeId }) => this.#maxOf(nodeId)));
  }

  /** UP1. What is in the way of a version, one text for each node. */
  #blockers(version: ClusterVersion): readonly string[] {
    if (version <= this.#deps.state.clusterVersion) return [];
    return this.#nodes().flatMap(({ nodeId, name }) => {
      const versions = this.#deps.heard(nodeId)?.versions;
      const state = this.#deps.stateOf(nodeId);
      if (versions === undefined && state !== 'down') {
        return [`node ${nodeId} (${name}) has not reported to the new leader of the masters: try again in a moment`];
      }
      if (state !== 'up' || versions === undefined) {
        return [`node ${nodeId} (${name}) is ${state}: start it with Remora ${versionText(version)}, or remove it`];
      }
      if (versions.max >= version) return [];
      const reach = versionText(versions.max);
      return [`node ${nodeId} (${name}) writes versions up to ${reach}: install Remora ${versionText(version)} there`];
    });
  }
}
