/** A Raft host and its state machines, with hooks for an observer. */
import type {
  ConfState,
  Entry,
  GroupAppend,
  GroupId,
  GroupOptions,
  NodeRaftHost,
  RaftHostOptions,
  RecoveredGroup,
  SnapshotMeta,
  SnapshotReceiver,
  StateMachine,
} from '@remora/raft';
import { createRaftHost } from '../../../../packages/raft/src/multi/host/host.ts';
import { observedLog } from './observed-log.ts';

export interface HostWatch {
  /** A life begins with this host and with what its log recovered. */
  began(host: NodeRaftHost, recovered: ReadonlyMap<GroupId, RecoveredGroup>): void;
  /** A replica is about to start. */
  opened(group: GroupOptions): void;
  removed(groupId: GroupId): void;
  /** Records are appended to the log. */
  appended(batch: readonly GroupAppend[]): void;
  /** A state machine is about to apply an entry. */
  applying(groupId: GroupId, entry: Entry, conf: ConfState): void;
  /** A state machine has installed a snapshot. */
  installed(groupId: GroupId, meta: SnapshotMeta): void;
}

export function watchedHost(options: RaftHostOptions, watch: HostWatch): NodeRaftHost {
  const log = observedLog(options.log, (batch) => watch.appended(batch));
  const host = createRaftHost({ ...options, log });
  watch.began(host, log.recovered());
  return {
    start: () => host.start(),
    createGroup: (group) => {
      watch.opened(group);
      return host.createGroup({ ...group, stateMachine: watchedMachine(group, watch) });
    },
    group: (groupId) => host.group(groupId),
    removeGroup: (groupId, recorded) => {
      watch.removed(groupId);
      return host.removeGroup(groupId, recorded);
    },
    logDurable: () => host.logDurable(),
    logFailed: (error) => host.logFailed(error),
    stats: () => host.stats(),
    inFlight: () => host.inFlight(),
    get stopped() {
      return host.stopped;
    },
    get logHangs() {
      return host.logHangs;
    },
    stop: () => host.stop(),
  };
}

function watchedMachine({ groupId, stateMachine: inner }: GroupOptions, watch: HostWatch): StateMachine {
  const { admitsConf } = inner;
  return {
    apply: (entries, conf) => {
      for (const entry of entries) watch.applying(groupId, entry, conf);
      return inner.apply(entries, conf);
    },
    ...(admitsConf !== undefined && { admitsConf: admitsConf.bind(inner) }),
    roleChanged: (change) => inner.roleChanged(change),
    snapshot: () => inner.snapshot(),
    install: (meta) => watchedReceiver(inner.install(meta), () => watch.installed(groupId, meta)),
  };
}

function watchedReceiver(inner: SnapshotReceiver, installed: () => void): SnapshotReceiver {
  return {
    chunk: (bytes) => inner.chunk(bytes),
    finish: async (progress) => {
      await inner.finish(progress);
      installed();
    },
    abort: (reason) => inner.abort(reason),
  };
}
