/**
 * Versions of a cluster: what its nodes may write, and what each version brings (docs/decisions/0100).
 *
 * CV1. Each minor release brings one version, a patch release none. A build writes its own version and the one before,
 *      and reads all versions up to its own.
 * CV2. The masters keep the version in force. Log entries, rows, snapshots, backups and messages are written up to that
 *      version. It never decreases, and rises only when every node can write the new one.
 * CV3. What apply makes of an entry depends on the version of the entry, and never on what the applying node knows.
 */

/** `major × 1,000 + minor`, so that later versions are larger numbers. */
export type ClusterVersion = number;

/** Both are included. */
export interface VersionRange {
  readonly min: ClusterVersion;
  readonly max: ClusterVersion;
}

/** What one side of a connection says of itself. */
export interface SpokenVersions {
  /** What the build can write. */
  readonly builds: VersionRange;
  /** The version in force, as far as the node knows; absent for clients, which write nothing that stays. */
  readonly inForce?: ClusterVersion;
}

const MINORS = 1_000;

/** Version 0.1 is `version(0, 1)`. */
function version(major: number, minor: number): ClusterVersion {
  return major * MINORS + minor;
}

/** The first version: everything that was written before there were versions has it. */
export const FIRST_VERSION: ClusterVersion = version(0, 1);

/** What each version after the first one brings; the code that depends on a version asks `brings`. */
export const FEATURES = {
  /**
   * A transaction that writes may read at any revision up to the newest one, though the last change of a range that it
   * reads is older. Before, such a read is refused as a future revision.
   */
  txnReadsUpToBlock: version(0, 2),
} as const satisfies Record<string, ClusterVersion>;

export type Feature = keyof typeof FEATURES;

/** Whether something that was written in this version has the feature. */
export function brings(inVersion: ClusterVersion, feature: Feature): boolean {
  return inVersion >= FEATURES[feature];
}

/** All versions that this code knows, the oldest first: also those of releases that are still to come. */
const KNOWN: readonly ClusterVersion[] = [FIRST_VERSION, ...new Set(Object.values(FEATURES))].sort((a, b) => a - b);

/** The release that this code is or becomes; a test compares it with the packages. */
const RELEASE = '0.1';

/** Set by a bundler: the test of upgrades builds the same code as an earlier and as a later release. */
declare const REMORA_NEWEST_VERSION: string | undefined;

/** What this build can write (CV1). */
export const BUILD_VERSIONS: VersionRange = rangeUpTo(
  typeof REMORA_NEWEST_VERSION === 'string' ? REMORA_NEWEST_VERSION : RELEASE,
);

/** What the build of a release can write (CV1). */
export function rangeUpTo(release: string): VersionRange {
  const max = versionOf(release);
  const at = max === undefined ? -1 : KNOWN.indexOf(max);
  if (max === undefined || at < 0) throw new Error(`release ${release} has no row in the table of cluster versions`);
  return { min: KNOWN[at - 1] ?? max, max };
}

export function versionText(of: ClusterVersion): string {
  return `${Math.floor(of / MINORS)}.${of % MINORS}`;
}

/** Reads `0.1`; undefined for anything else. */
export function versionOf(text: string): ClusterVersion | undefined {
  const [, major, minor] = /^(\d{1,6})\.(\d{1,3})$/.exec(text) ?? [];
  return major === undefined || minor === undefined ? undefined : version(Number(major), Number(minor));
}

export function rangeText({ min, max }: VersionRange): string {
  return `${versionText(min)}-${versionText(max)}`;
}

/** Reads `0.1-0.2`; undefined for anything else. */
export function rangeOf(text: string): VersionRange | undefined {
  const [from = '', to = '', ...rest] = text.split('-');
  const [min, max] = [versionOf(from), versionOf(to)];
  return min === undefined || max === undefined || rest.length > 0 || min > max ? undefined : { min, max };
}

/**
 * Why two builds cannot talk to each other, and which of them to replace; undefined if they can. `who` names the two
 * sides in the text, which either of them may read.
 */
export function versionRefusal(
  own: SpokenVersions,
  peer: VersionRange | undefined,
  who: { readonly own: string; readonly peer: string },
): string | undefined {
  if (peer === undefined) {
    return `${who.peer} does not name its versions, so it is older than Remora 0.1: install a release that writes version ${versionText(own.inForce ?? own.builds.max)} there`;
  }
  const { builds, inForce } = own;
  const lowest = inForce ?? builds.min;
  if (peer.max < lowest) {
    const needed = versionText(lowest);
    const why = inForce === undefined ? `${who.own} from` : `the cluster of ${who.own} is at version`;
    return `${who.peer} writes versions up to ${versionText(peer.max)}, and ${why} ${needed}${inForce === undefined ? ' on' : ''}: install Remora ${needed} or later there`;
  }
  if (inForce !== undefined && peer.min > inForce) {
    const needed = versionText(peer.min);
    return `${who.peer} writes versions from ${needed} on, and the cluster of ${who.own} is at version ${versionText(inForce)}: install Remora ${needed} on all nodes and run "remora admin upgrade finalize" first`;
  }
  if (peer.min > builds.max) {
    const needed = versionText(peer.min);
    return `${who.own} writes versions up to ${versionText(builds.max)}, and ${who.peer} from ${needed} on: install Remora ${needed} or later for ${who.own} first`;
  }
  return undefined;
}
