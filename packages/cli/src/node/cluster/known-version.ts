/**
 * The version in force, as this node knows it: what the node writes goes up to that version (docs/decisions/0100).
 *
 * KV1. The node learns it from the masters, and from its own replica of their group. It is durable before the node
 *      writes anything in that version, so that a later life knows it before it can reach the masters.
 * KV2. A build starts only on data that it can continue: it writes the version that the data directory knows. An
 *      earlier build would not read what the nodes write, a later one could not write what they read.
 * KV3. It never decreases.
 */
import { type ClusterVersion, type Logger, type SpokenVersions, type VersionRange, versionText } from '@remora/base';
import type { NodeVersions } from '@remora/protocol';
import { CommandError } from '../../exit-codes.ts';
import type { NodeRecords } from '../node-records.ts';

export interface KnownVersionDeps {
  readonly records: Pick<NodeRecords, 'clusterVersion' | 'rememberVersion'>;
  /** What this build can write. */
  readonly builds: VersionRange;
  readonly logger: Logger;
  /** The node must stop (KV2). */
  readonly onUnfit: (error: CommandError) => void;
}

export class KnownVersion implements SpokenVersions {
  readonly #deps: KnownVersionDeps;
  readonly builds: VersionRange;
  #inForce: ClusterVersion;

  constructor(deps: KnownVersionDeps) {
    this.#deps = deps;
    this.builds = deps.builds;
    // A new node writes the lowest version that it can, until it knows better.
    this.#inForce = deps.records.clusterVersion ?? deps.builds.min;
  }

  /** @throws {CommandError} `dataDir` for data that the build cannot continue (KV2). */
  check(): void {
    const refused = unfit(this.#inForce, this.builds);
    if (refused !== undefined) throw refused;
  }

  /** The version up to which this node writes. */
  get inForce(): ClusterVersion {
    return this.#inForce;
  }

  /** What heartbeats report. */
  get report(): NodeVersions {
    return { ...this.builds, inForce: this.#inForce };
  }

  /** The masters have reported this version, or this node's replica of their group has applied it. (KV1, KV3) */
  learn(version: ClusterVersion | undefined): void {
    const { records, builds, logger, onUnfit } = this.#deps;
    if (version === undefined || version === records.clusterVersion) return;
    const refused = unfit(version, builds);
    if (refused !== undefined) return onUnfit(refused);
    if (version < this.#inForce) return;
    records.rememberVersion(version);
    if (version > this.#inForce) {
      logger.info({ from: versionText(this.#inForce), to: versionText(version) }, 'a newer version is in force');
    }
    this.#inForce = version;
  }
}

/** Why a build cannot be part of a cluster at this version. */
function unfit(version: ClusterVersion, { min, max }: VersionRange): CommandError | undefined {
  const at = `the cluster is at version ${versionText(version)}, and this build writes versions`;
  if (version > max) {
    return new CommandError(
      'dataDir',
      `${at} up to ${versionText(max)}: install Remora ${versionText(version)} or later`,
    );
  }
  if (version >= min) return undefined;
  const needed = versionText(min);
  return new CommandError(
    'dataDir',
    `${at} from ${needed} on: install Remora ${needed} on all nodes, run "remora admin upgrade finalize", and then install this release`,
  );
}
