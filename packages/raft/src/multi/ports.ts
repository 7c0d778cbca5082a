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

/** A node's id, given by the master (or by position in the initial cluster), never reused. */
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
  /** What the log holds behind `start`; may begin before what the state machine has applied. */
  readonly outline: LogOutline;
  /**
   * The last entries of it, contiguous, as many as the log saw fit to keep at hand; the others are there to be read.
   */
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
  /** What was found when the log was opened. Meant to be read once, then released by `forgetRecovered`. */
  recovered(): ReadonlyMap<GroupId, RecoveredGroup>;
  forgetRecovered(): void;
  append(batch: readonly GroupAppend[], done: () => void): void;
  /**
   * Too much waits to be written: whoever can refuse or drop work should, until it is false again. `append` itself
   * refuses nothing.
   */
  readonly full: boolean;
  /**
   * Reads entries back (L4): contiguous from `from`, at least one, perhaps fewer than fit. None when the log does not
   * hold `from`; entries that an append under way replaces may come in either form. Rejects with `LogDamagedError` when
   * they are there and cannot be read: the node must stop.
   */
  read(range: EntryRange): Promise<readonly Entry[]>;
  /** Entries up to `position` are covered by a durable checkpoint and may be reclaimed. */
  compact(groupId: GroupId, position: LogPosition): void;
  /** The group is gone (removed, merged): all its records may be reclaimed. */
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
 * and no commit index: it keeps authority and checks health, nothing else.
 */
export interface Heartbeat {
  readonly type: 'heartbeat';
  /** Drawn when the sender's host was made: an answer to an earlier process counts for nothing. */
  readonly bootId: number;
  /** Grows by one with each heartbeat of this process to this peer. */
  readonly sequence: number;
  /** Growing. The same array object as before when nothing changed. */
  readonly groups: readonly GroupId[];
}

export interface HeartbeatRefusal {
  readonly groupId: GroupId;
  /** There is no replica of it here, or it does not follow one at the sender's node. */
  readonly reason: 'noReplica' | 'notFollowing';
  /** The replica's term; 0 when there is none. */
  readonly term: number;
}

export interface HeartbeatReply {
  readonly type: 'reply';
  /** What is answered. */
  readonly bootId: number;
  readonly sequence: number;
  readonly replierBootId: number;
  /** The exceptions, by growing group: all other groups that were named follow. */
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
  /** Called in order; resolves when the chunk is stored, which is its acknowledgement. */
  chunk(bytes: Uint8Array): Promise<void>;
  /**
   * All chunks are there: install. A long installation calls `progress` now and then: an installation that shows none
   * for `HostOptions.snapshotInstallTimeoutMs` is taken for stuck.
   */
  finish(progress?: () => void): Promise<void>;
  abort(reason: string): void;
}

export interface TransportHandlers {
  onMessages(from: NodeId, messages: readonly GroupMessage[]): void;
  onHeartbeat(from: NodeId, frame: HeartbeatFrame): void;
  /** Rejects when the snapshot is not wanted; with `RESOURCE_EXHAUSTED` when it may be offered again later. */
  onSnapshot(from: NodeId, header: SnapshotHeader): Promise<SnapshotReceiver>;
  /** A peer went from reachable to unreachable: replication to it goes back to probing. */
  onUnreachable(node: NodeId): void;
}

/** Messages between nodes. Losing, repeating and reordering them is allowed; corrupting or forging them is not. */
export interface Transport {
  start(handlers: TransportHandlers): void;
  /** Queues one frame for a node; when its queue is full or it is down, the frame is dropped. */
  send(node: NodeId, messages: readonly GroupMessage[]): void;
  /**
   * Something may be sent to the node at any time: connects to it, if it is not connected to. Absent: sending does
   * that.
   */
  reach?(node: NodeId): void;
  /** Queues a heartbeat or a reply to one, as a frame of its own, under the same rules. */
  sendHeartbeat(node: NodeId, frame: HeartbeatFrame): void;
  /**
   * Sends a snapshot; resolves once the peer has installed it. A connection that breaks is made anew, and the transfer
   * goes on where it was: `resumed` is called each time, the chunks are read once. Rejects with `RESOURCE_EXHAUSTED`,
   * before anything was read, when the peer has no place for it now.
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
   * Read once at most. What a chunk holds is taken before the next one is asked for, so all of them may be in the same
   * memory: a buffer for each makes the process collect garbage often, which all its groups feel.
   */
  readonly chunks: AsyncIterable<Uint8Array>;
  /** About how many bytes the chunks have, if that is known: for showing progress. */
  readonly bytes?: number;
  release(): void;
}

/** What a group replicates. All calls of one group are serial; `apply` must be deterministic. */
export interface StateMachine {
  /**
   * Applies committed entries in order. Returns a promise only when it has to wait for cold data; the host then waits.
   * `conf` is the membership once they are applied, to be stored with the position: an entry of type `conf` comes
   * alone, with the membership it makes; there is nothing else to do for it.
   */
  apply(entries: readonly Entry[], conf: ConfState): void | Promise<void>;
  /**
   * Whether a committed membership change takes effect, by the state machine's own rules (design §7: the epoch in its
   * context, for one); absent, all do. Asked between applies, when everything before the change is applied: a pure
   * function of that state, as every replica must find the same. Not asked about leaving a joint configuration, nor
   * about a forced change (core/membership/forced.ts): these must always be possible. Whoever proposes a change checks
   * the same rules before.
   */
  admitsConf?(change: ConfChange): boolean;
  /** Role, term or leader changed; called between applies, before entries of the new term are applied. */
  roleChanged(change: { readonly role: Role; readonly term: number; readonly leader: number }): void;
  /** A consistent picture of what is applied now; several may be open. */
  snapshot(): StateMachineSnapshot;
  /**
   * Replaces everything with a snapshot's data; durable, together with its (index, term) and conf, when `finish`
   * resolves.
   */
  install(meta: SnapshotMeta): SnapshotReceiver;
}
