/**
 * All conditions of a cluster, in one table. Every view, the page of documentation and the alert rules follow from it.
 *
 * A new condition needs: its row here; the code that finds it (a node about itself: `cli/src/node/health.ts`; the
 * masters about the cluster: `master/src/admin/check.ts`); a test that causes it (`test/e2e/health*.test.ts`); and
 * `npm run docs`, which writes the page and the alert rules.
 */

/** `critical`: clients are refused or kept waiting. `warning`: clients are served. `info`: an operator intends it. */
export type ConditionSeverity = 'critical' | 'warning' | 'info';

/** `node`: it concerns the node that `nodeId` names. `cluster`: it concerns keys or the whole cluster. */
export type ConditionScope = 'node' | 'cluster';

export interface HealthConditionKind {
  readonly severity: ConditionSeverity;
  readonly scope: ConditionScope;
  /**
   * Whether the node whose own it is should get no clients. `unlessAlone`: if another node would serve better (HC3).
   */
  readonly unready?: 'always' | 'unlessAlone';
  /** What is wrong, and what clients notice. */
  readonly means: string;
  /** What to do about it. Commands and options are in backticks. */
  readonly advice: string;
  /** The page that says more: its title, and its path from the folder `docs`. */
  readonly page?: readonly [title: string, path: string];
  /** How long it lasts until an alert fires; by default, the time of its severity (`ALERT_AFTER`). */
  readonly alertAfter?: string;
  /** The text without the keys that it names (HC4). */
  readonly withoutKeys?: (rangeId: number) => string;
}

/** Conditions of severity `info` are no reason for an alert. */
export const ALERT_AFTER = { critical: '1m', warning: '10m' } as const;

const LOST_MAJORITY = ['Recover from a lost majority', 'how-to/cluster/recover-from-a-lost-majority.md'] as const;
const DEAD_NODE = ['Replace a dead node', 'how-to/cluster/replace-a-dead-node.md'] as const;
const STUCK = ['Nothing moves: why?', 'how-to/cluster/balance-load.md#nothing-moves-why'] as const;
const CERTIFICATES = ['Replace certificates', 'how-to/cluster/secure-a-cluster.md#replace-certificates'] as const;
const AUTHENTICATION = [
  'Switch authentication on and off',
  'how-to/cluster/secure-a-cluster.md#switch-authentication-on-and-off',
] as const;

const UPGRADE = ['Upgrade a cluster', 'how-to/cluster/upgrade-a-cluster.md'] as const;

export const HEALTH_CONDITIONS = {
  starting: {
    ...{ severity: 'info', scope: 'node', unready: 'always' },
    means: 'The node has not heard from the masters since it started. It serves no clients yet.',
    advice: 'No action is needed. If the condition stays for more than a minute, follow the advice of `noMasters`.',
  },
  stopping: {
    ...{ severity: 'info', scope: 'node', unready: 'always' },
    means: 'The node is shutting down. Clients move to other nodes.',
    advice: 'No action is needed.',
  },
  draining: {
    ...{ severity: 'info', scope: 'node', unready: 'unlessAlone' },
    means: 'The node is draining, in maintenance or being decommissioned. It serves clients, and leads nothing.',
    advice:
      'No action is needed: an operator has asked for this. To let the node serve again, return it to service ' +
      '(`remora admin nodes undrain NODE`).',
  },
  diskReserve: {
    ...{ severity: 'critical', scope: 'node', unready: 'unlessAlone' },
    means:
      'The node has less free disk than `--disk-reserve`. The ranges that it leads reject values with ' +
      'RESOURCE_EXHAUSTED; locks, reads and deletes continue.',
    advice:
      'Add space, remove other files, or delete keys and run `remora admin compact`. ' +
      '`remora admin transfer-leader` moves a range to a node with space.',
    page: ['Errors of clients', 'how-to/cluster/troubleshoot.md#errors-of-clients'],
  },
  logHangs: {
    ...{ severity: 'warning', scope: 'node' },
    means: "The node's disk neither completes nor fails a write. Other nodes lead its ranges.",
    advice: 'Check the disk. If it does not recover, kill the process and replace the node.',
    page: DEAD_NODE,
    alertAfter: '1m',
  },
  certificateExpires: {
    ...{ severity: 'warning', scope: 'node' },
    means: 'A TLS certificate of the node expires within 14 days. Clients notice nothing yet.',
    advice: 'Replace the files, then run `kill -HUP` on the node; no restart is needed.',
    page: CERTIFICATES,
  },
  certificateExpired: {
    ...{ severity: 'critical', scope: 'node', unready: 'unlessAlone' },
    means: 'A TLS certificate of the node has expired. Clients or other nodes refuse new connections to it.',
    advice: 'Replace the files, then run `kill -HUP` on the node; no restart is needed.',
    page: CERTIFICATES,
  },
  addressUnresolved: {
    ...{ severity: 'warning', scope: 'node' },
    means:
      'The node cannot resolve the name of a host that it dials, so it does not reach the node there. If that node has ' +
      'an address that others can resolve, clients notice nothing.',
    advice:
      'Correct the name service (try `getent hosts NAME` on the node), or the option that has the name: ' +
      '`--initial-cluster`, `--join`, or `--advertise-peer` of the other node.',
    page: ['Run three nodes on three machines', 'how-to/cluster/run-three-nodes.md'],
    alertAfter: '2m',
  },
  clockAhead: {
    ...{ severity: 'warning', scope: 'node' },
    means:
      "The node's wall clock differs from that of the masters' leader by more than a second. Locks and sessions do not " +
      'depend on it; certificates, tokens, maintenance windows and times in logs do.',
    advice: 'Synchronise the clocks: run chrony or another NTP client on every node, and compare `date -u`.',
  },
  clockRate: {
    ...{ severity: 'warning', scope: 'node' },
    means:
      "The node's clock runs more than 1 % faster or slower than that of the masters' leader. Sessions and leases " +
      'allow for 5 % per clock. Beyond that, two clients may believe that they hold one lock; fencing still protects.',
    advice:
      'Move the node to another machine, or repair the time source of its virtual machine. Until then, rely on fencing ' +
      'versions.',
    page: ['What only the version can promise', 'understand/locks.md#what-only-the-version-can-promise'],
  },
  authenticationOff: {
    ...{ severity: 'warning', scope: 'node' },
    means:
      'The node listens beyond loopback, authentication is off, and `--insecure anonymous` does not allow that: ' +
      'everybody who reaches its client port administers the cluster.',
    advice: 'Switch authentication on.',
    page: AUTHENTICATION,
  },
  anonymousAllowed: {
    ...{ severity: 'info', scope: 'node' },
    means:
      'The node listens beyond loopback, authentication is off, and `--insecure anonymous` allows that: everybody who ' +
      'reaches its client port administers the cluster.',
    advice: 'No action is needed, because an operator allowed it. It is safer to switch authentication on.',
    page: AUTHENTICATION,
  },
  silentNode: {
    ...{ severity: 'warning', scope: 'node' },
    means: 'The masters do not hear from the node. Its clients move to other nodes; its replicas count as missing.',
    advice:
      'Start it again. If it stopped by itself, the last lines of its log say why: exit code 74 is a full or failed ' +
      'disk. If it is gone for good, replace it.',
    page: DEAD_NODE,
    alertAfter: '5m',
  },
  noMasters: {
    ...{ severity: 'critical', scope: 'cluster' },
    means:
      'No leader of the masters has answered this node for 2 s. A cluster that was never split continues. In others, ' +
      'writes, locks and linearizable reads wait; serializable reads and watches continue. Nothing is repaired.',
    advice:
      'Start the nodes that the text names, or repair the network to their peer ports. If all are there and none ' +
      'leads, look at their logs.',
    page: LOST_MAJORITY,
  },
  notInformed: {
    ...{ severity: 'info', scope: 'cluster' },
    means: "The masters' leader is new and has not heard from all nodes. Until then it reports nothing about them.",
    advice: 'No action is needed: the nodes report within seconds.',
  },
  notListed: {
    ...{ severity: 'info', scope: 'cluster' },
    means: 'More is wrong than this node was told. The text says how many conditions are missing.',
    advice: '`remora admin check` lists all of them.',
  },
  ofNewerRelease: {
    ...{ severity: 'warning', scope: 'cluster' },
    means: 'A node of a newer release reports a condition that this release does not know. The text says what it is.',
    advice: 'Run `remora admin check` at a node of the newer release, which also says what to do.',
    page: UPGRADE,
  },
  noRanges: {
    ...{ severity: 'critical', scope: 'cluster' },
    means: 'The cluster has no range yet, so it stores nothing. All requests wait.',
    advice: 'Start the missing nodes with the role `data`. The text says how many the first range needs.',
  },
  hole: {
    ...{ severity: 'critical', scope: 'cluster' },
    means: 'Some keys belong to no range. This is normal for a moment while a split or a merge is reported.',
    advice: 'If it stays, it is a bug: keep the logs of all nodes and the output of `remora admin ranges --json`.',
    withoutKeys: (rangeId: number) => `no range has some keys, beside range ${rangeId}; remora admin check names them`,
  },
  overlap: {
    ...{ severity: 'critical', scope: 'cluster' },
    means: 'Some keys belong to two ranges. This is normal for a moment while a split or a merge is reported.',
    advice: 'If it stays, it is a bug: keep the logs of all nodes and the output of `remora admin ranges --json`.',
    withoutKeys: (rangeId: number) =>
      `range ${rangeId} and another one both have some keys; remora admin check names them`,
  },
  restoreUnderWay: {
    ...{ severity: 'warning', scope: 'cluster' },
    means: 'A restore or an import has begun and has not finished: the cluster lacks keys that clients expect.',
    advice:
      'Admit clients when it has finished. If it was interrupted, run the same command again: it continues. To give it ' +
      'up, start a new cluster.',
    page: ['Back up and restore', 'how-to/cluster/back-up-and-restore.md'],
    alertAfter: '6h',
  },
  quorumLost: {
    ...{ severity: 'critical', scope: 'cluster' },
    means: 'The masters do not hear from most replicas of a range. Requests for its keys wait.',
    advice: 'Bring the nodes back. If they are gone for good, recover the range from what is left.',
    page: LOST_MAJORITY,
  },
  noLeader: {
    ...{ severity: 'critical', scope: 'cluster' },
    means: 'A range has a majority and no leader. Requests for its keys wait. An election takes less than a second.',
    advice: "If it stays: check that its nodes reach each other's peer ports, and run `remora admin why RANGE`.",
  },
  underReplicated: {
    ...{ severity: 'warning', scope: 'cluster' },
    means: 'A range has fewer voters than the setting `replicas`. Clients notice nothing.',
    advice: 'Wait for the repair (`remora admin operators ls`), or add a node.',
    alertAfter: '30m',
  },
  silentReplica: {
    ...{ severity: 'warning', scope: 'cluster' },
    means: 'A replica does not respond: its node is silent, or does not have it. Clients notice nothing.',
    advice:
      'If its node does not answer (`silentNode`), start that node again, or replace it. Otherwise run ' +
      '`remora admin why RANGE`.',
    page: DEAD_NODE,
  },
  replicaBehind: {
    ...{ severity: 'warning', scope: 'cluster' },
    means:
      'A follower answers and has lacked many entries of its range for a minute. Clients notice nothing; if another ' +
      'replica fails, writes may wait for this one.',
    advice:
      'Check the disk and the network of its node: compare `remora_log_sync_seconds` of the nodes. While it receives a ' +
      'snapshot, wait.',
    page: ['Tune snapshots', 'how-to/cluster/tune-snapshots.md'],
  },
  rangeTooLarge: {
    ...{ severity: 'warning', scope: 'cluster' },
    means: 'A range is larger than it should be. The text says whether its writes are slowed or refused.',
    advice: 'Split it: `remora admin split`. `remora admin why RANGE` says why that has not happened.',
    page: ['Split and merge ranges', 'how-to/cluster/split-and-merge-ranges.md'],
  },
  learner: {
    ...{ severity: 'warning', scope: 'cluster' },
    means: "A change of a range's members is under way, or stopped half-way. Clients notice nothing.",
    advice: 'Wait. If it stays, run `remora admin why RANGE`.',
    alertAfter: '1h',
  },
  joint: {
    ...{ severity: 'warning', scope: 'cluster' },
    means: "A change of a range's members is under way, or stopped half-way. Clients notice nothing.",
    advice: 'Wait. If it stays, run `remora admin why RANGE`.',
    alertAfter: '30m',
  },
  stuck: {
    ...{ severity: 'warning', scope: 'cluster' },
    means: 'The schedulers cannot repair a range. Clients notice nothing until more nodes fail.',
    advice: 'Run `remora admin why RANGE`; usually a node or a zone is missing.',
    page: STUCK,
    alertAfter: '30m',
  },
  misplaced: {
    ...{ severity: 'warning', scope: 'cluster' },
    means: 'The replicas of a range could be further apart. Clients notice nothing until a zone fails.',
    advice: 'Wait, or add nodes with other labels. `remora admin why RANGE` says what is missing.',
    page: STUCK,
    alertAfter: '1h',
  },
  stuckOperator: {
    ...{ severity: 'warning', scope: 'cluster' },
    means: 'A change that the schedulers began makes no progress. Clients notice nothing.',
    advice: 'Run `remora admin operators ls` and `remora admin why RANGE`.',
    page: STUCK,
    alertAfter: '30m',
  },
  orphan: {
    ...{ severity: 'warning', scope: 'cluster' },
    means: 'A node still holds a replica that no longer belongs to its range. It takes disk space.',
    advice: 'Wait: the node deletes it when it next hears from the masters.',
    alertAfter: '30m',
  },
  mixedVersions: {
    ...{ severity: 'info', scope: 'cluster' },
    means: 'Some nodes can write a newer version than others: an upgrade has begun. Clients notice nothing.',
    advice: 'Continue the upgrade, or install the earlier release on the other nodes: `remora admin upgrade status`.',
    page: UPGRADE,
  },
  upgradeNotFinalized: {
    ...{ severity: 'info', scope: 'cluster' },
    means: 'All nodes can write a newer version than the one in force. Clients notice nothing.',
    advice: 'When no node has to go back to the earlier release, run `remora admin upgrade finalize`.',
    page: UPGRADE,
  },
} as const satisfies Record<string, HealthConditionKind>;

export type ConditionName = keyof typeof HEALTH_CONDITIONS;
