import type { ConfChange } from '../core/membership/conf-change.ts';
import type {
  ConfState,
  Entry,
  HardState,
  LogOutline,
  LogPosition,
  Message,
  Role,
  SnapshotMeta,
} from '../core/types.ts';

/** A Raft group's id, which is also its range's id. The master group is `MASTER_GROUP`; ranges count from 2. */
export type GroupId = number;
export const MASTER_GROUP: GroupId = 1;

/** A node's id, assigned by the master (or by position in the initial cluster), never reused. */
export type NodeId = number;

// ---------------------------------------------------------------------------------------------- log

export interface GroupAppend {
  readonly groupId: GroupId;
  readonly hardState?: HardState;
  /** Contiguous; they replace everything from `entries[0].index` on. */
  readonly entries: readonly Entry[];
  /** The group's log restarts after this position; earlier and later entries are dropped. Comes before `entries`. */
  readonly restartAt?: LogPosition;
}

export interface RecoveredGroup {
  readonly hardState: HardState;
  /** The position just before the log's first entry; (0, 0) for one that was never compacted. */
  readonly start: LogPosition;
  /** Describes the log behind `start`; may begin before what the state machine has applied. */
  readonly outline: LogOutline;
  /** The log's last entries, contiguous, as many as the log keeps in memory; the others can be read. */
  readonly entries: readonly Entry[];
}

/** Entries of a group, from `from` to at most `to`, both included. */
export interface EntryRange {
  readonly groupId: GroupId;
  readonly from: number;
  readonly to: number;
  /** Most bytes of entries (`entryBytes`); the first one always fits. */
  readonly maxBytes: number;
}

/**
 * The write-ahead log of a node, for all its groups.
 *
 * L1. `append` calls back in the order of the calls, each time only after its batch and all earlier ones are durable.
 * L2. After a crash, recovery returns a prefix of the calls that includes every call that was called back.
 * L3. A failed write or sync stops the node (`onFailure`); it is never retried (traps 26).
 * L4. Entries that were called back, and have not been compacted, truncated or removed since, can be read and are
 *     unchanged.
 */
export interface GroupLog {
  /** What the log found when it was opened. Meant to be read once, then released by `forgetRecovered`. */
  recovered(): ReadonlyMap<GroupId, RecoveredGroup>;
  forgetRecovered(): void;
  append(batch: readonly GroupAppend[], done: () => void): void;
  /**
   * Too much waits to be written: callers that can refuse or drop work should do so until it is false again. `append`
   * itself refuses nothing.
   */
  readonly full: boolean;
  /**
   * Reads entries back (L4): contiguous from `from`, at least one, perhaps fewer than fit. Returns none if the log does
   * not have `from`; entries that an append in progress replaces may come in either form. Rejects with
   * `LogDamagedError` if they exist and cannot be read: the node must stop.
   */
  read(range: EntryRange): Promise<readonly Entry[]>;
  /** Entries up to `position` are covered by a durable checkpoint and may be reclaimed. */
  compact(groupId: GroupId, position: LogPosition): void;
  /** The group was removed or merged: all its records may be reclaimed. */
  removeGroup(groupId: GroupId): void;
  stats(): { readonly bytes: number; readonly segments: number; readonly syncs: number; readonly appends: number };
  close(): Promise<void>;
}

// ---------------------------------------------------------------------------------------------- transport

export interface GroupMessage {
  readonly groupId: GroupId;
  readonly message: Message;
}

/**
 * A node's heartbeats to one peer, for all groups that it leads and that are steady there (design §5). It names no term
 * and no commit index: it only keeps authority and checks health.
 */
export interface Heartbeat {
  readonly type: 'heartbeat';
  /** Random, drawn when the sender's host was created: answers to earlier processes are ignored. */
  readonly bootId: number;
  /** Grows by one with each heartbeat of this process to this peer. */
  readonly sequence: number;
  /** Ascending. If nothing changed, the same array object as before. */
  readonly groups: readonly GroupId[];
}

export interface HeartbeatRefusal {
  readonly groupId: GroupId;
  /** There is no replica of the group here, or it does not follow one at the sender's node. */
  readonly reason: 'noReplica' | 'notFollowing';
  /** The replica's term; 0 when there is none. */
  readonly term: number;
}

export interface HeartbeatReply {
  readonly type: 'reply';
  /** The boot id of the answered heartbeat. */
  readonly bootId: number;
  readonly sequence: number;
  readonly replierBootId: number;
  /** The exceptions, ascending by group: all other named groups follow. */
  readonly refused: readonly HeartbeatRefusal[];
}

export type HeartbeatFrame = Heartbeat | HeartbeatReply;

export interface SnapshotHeader {
  readonly groupId: GroupId;
  readonly from: number;
  readonly to: number;
  readonly term: number;
  readonly meta: SnapshotMeta;
}

export interface SnapshotReceiver {
  /** Called in order; resolves when the chunk is stored, which acknowledges it. */
  chunk(bytes: Uint8Array): Promise<void>;
  /**
   * All chunks have arrived: install. A long installation calls `progress` repeatedly: without progress for
   * `HostOptions.snapshotInstallTimeoutMs` it counts as stuck.
   */
  finish(progress?: () => void): Promise<void>;
  abort(reason: string): void;
}

export interface TransportHandlers {
  onMessages(from: NodeId, messages: readonly GroupMessage[]): void;
  onHeartbeat(from: NodeId, frame: HeartbeatFrame): void;
  /** Rejects if the snapshot is not wanted; with `RESOURCE_EXHAUSTED` if it may be offered again later. */
  onSnapshot(from: NodeId, header: SnapshotHeader): Promise<SnapshotReceiver>;
  /** A peer was reachable and is not any more: replication to it goes back to probing. */
  onUnreachable(node: NodeId): void;
  /**
   * The process that a peer ran has ended, as far as can be seen from here: nothing arrives from it any more, and its
   * address refuses connections. A peer that is only silent is never reported. Called after the peer's last message. A
   * firewall or a proxy that refuses connections for a living process has the same effect, so this is no proof.
   */
  onGone(node: NodeId): void;
}

/** Messages between nodes. They may be lost, repeated and reordered, but not corrupted or forged. */
export interface Transport {
  start(handlers: TransportHandlers): void;
  /** Queues one frame for a node; when its queue is full or it is down, the frame is dropped. */
  send(node: NodeId, messages: readonly GroupMessage[]): void;
  /**
   * The caller may send to the node at any time: connects to it, if there is no connection. Absent: sending does that.
   */
  reach?(node: NodeId): void;
  /** Queues a heartbeat or a reply to one, as a frame of its own, under the same rules. */
  sendHeartbeat(node: NodeId, frame: HeartbeatFrame): void;
  /**
   * Sends a snapshot; resolves once the peer has installed it. After a broken connection, the transfer continues over a
   * new one: `resumed` is called each time, the chunks are read once. Rejects with `RESOURCE_EXHAUSTED`, before
   * anything was read, if the peer has no place for it now.
   */
  sendSnapshot(
    node: NodeId,
    header: SnapshotHeader,
    chunks: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
    resumed?: () => void,
  ): Promise<void>;
  stop(): Promise<void>;
}

// ---------------------------------------------------------------------------------------------- state machine

export interface StateMachineSnapshot {
  readonly meta: SnapshotMeta;
  /**
   * Read at most once. Each chunk is copied before the next one is requested, so all chunks may use the same memory: a
   * buffer for each causes frequent garbage collection, which slows all groups.
   */
  readonly chunks: AsyncIterable<Uint8Array>;
  /** The approximate size of all chunks, if known: for showing progress. */
  readonly bytes?: number;
  release(): void;
}

/** What a group replicates. All calls of one group are serial; `apply` must be deterministic. */
export interface StateMachine {
  /**
   * Applies committed entries in order. Returns a promise only if it has to wait for cold data; the host then waits.
   * `conf` is the membership after these entries, to be stored with the position. An entry of type `conf` comes alone,
   * together with the resulting membership; nothing else needs to be done for it.
   */
  apply(entries: readonly Entry[], conf: ConfState): void | Promise<void>;
  /**
   * Whether a committed membership change takes effect, by the state machine's own rules (for example design §7: the
   * epoch in its context); absent, all do. Called between applies, when everything before the change is applied: it
   * must be a pure function of that state, because every replica must get the same answer. Not called for leaving a
   * joint configuration, nor for a forced change (core/membership/forced.ts): these must always be possible. The
   * proposer of a change checks the same rules first.
   */
  admitsConf?(change: ConfChange): boolean;
  /** Role, term or leader changed; called between applies, before entries of the new term are applied. */
  roleChanged(change: { readonly role: Role; readonly term: number; readonly leader: number }): void;
  /**
   * The group may show another status than before (`Group.status`): it had a turn, its log was cut, or it leads and
   * does not hear from a member. While nothing of that happens, its status stays as it is.
   */
  touched?(): void;
  /** Returns a consistent picture of the applied state; several may be open. */
  snapshot(): StateMachineSnapshot;
  /**
   * Replaces everything with a snapshot's data; durable, together with its (index, term) and conf, when `finish`
   * resolves.
   */
  install(meta: SnapshotMeta): SnapshotReceiver;
}
