import type { RaftConfig, RaftInitial, RaftStatus } from './config.ts';
import type {
  ConfState,
  LogPosition,
  Message,
  PersistMark,
  Ready,
  Refusal,
  ReplicaId,
  Role,
  SnapshotMeta,
} from './types.ts';

/**
 * One replica of one Raft group: synchronous and pure. Feed it ticks, messages and proposals; after each turn take
 * `ready()` and do what it says.
 */
export class RaftCore {
  readonly id: ReplicaId;

  constructor(config: RaftConfig, _initial: RaftInitial) {
    this.id = config.id;
  }

  get role(): Role {
    throw new Error('being written');
  }
  get term(): number {
    throw new Error('being written');
  }
  /** The leader as far as known; 0 when unknown. */
  get leader(): ReplicaId {
    throw new Error('being written');
  }
  get commit(): number {
    throw new Error('being written');
  }
  get applied(): number {
    throw new Error('being written');
  }
  get conf(): ConfState {
    throw new Error('being written');
  }
  /** True for a leader that has committed an entry of its own term. */
  get leaderReady(): boolean {
    throw new Error('being written');
  }

  /** One unit of time has passed. */
  tick(): void {
    throw new Error('being written');
  }

  /** A message has arrived. Messages not addressed to this replica are ignored. */
  step(_message: Message): void {
    throw new Error('being written');
  }

  /**
   * Appends one entry as the leader and returns its position. It is sent and persisted with the next `Ready`; it
   * counts only when an entry of the same (index, term) is handed out as committed.
   * Refusals: `notLeader`, `transferring`, `queueFull`.
   */
  propose(_data: Uint8Array): LogPosition | { readonly refused: Refusal } {
    throw new Error('being written');
  }

  /**
   * The state machine has applied a `conf` entry (or a new group's first configuration): from now on this is the
   * configuration. Call it before `appliedTo` of that entry.
   */
  applyConf(_conf: ConfState): void {
    throw new Error('being written');
  }

  /**
   * Starts a ReadIndex round at once. `context` (above 0, larger than any before it) comes back in `Ready.readStates`
   * when a quorum has confirmed the leadership after this call, or in `Ready.readsDropped` when leadership is lost
   * first. Before the leader has committed an entry of its own term the round waits for that.
   * Refusals: `notLeader`, `queueFull`.
   */
  readIndex(_context: number): Refusal | undefined {
    throw new Error('being written');
  }

  /**
   * Hands leadership over: brings the target up to date, then asks it to campaign at once. Meanwhile proposals are
   * refused `transferring`; given up after an election timeout. Refusals: `notLeader`, `transferring` (to another
   * target), `notVoter`.
   */
  transferLeader(_to: ReplicaId): { readonly refused: Refusal } | undefined {
    throw new Error('being written');
  }

  /** Whether `ready` has anything to hand out. */
  hasReady(): boolean {
    throw new Error('being written');
  }

  /** Takes everything there is to do. Each thing is handed out once. */
  ready(): Ready {
    throw new Error('being written');
  }

  /**
   * What was handed out under `mark` is durable. Marks are reported in order, each once. Releases what waited for it
   * (votes, vote requests, acknowledgements) and counts the leader's own log: take `ready` afterwards.
   */
  persisted(_mark: PersistMark): void {
    throw new Error('being written');
  }

  /** The state machine has applied everything up to `index`; call `ready` again if `hasReady`. */
  appliedTo(_index: number): void {
    throw new Error('being written');
  }

  /** Drops entries up to `index` (at most `applied`) from memory. Already compacted indexes are ignored. */
  compactTo(_index: number): void {
    throw new Error('being written');
  }

  /** Messages to this replica may have been lost: replication to it goes back to probing. */
  reportUnreachable(_to: ReplicaId): void {
    throw new Error('being written');
  }

  /** The snapshot wanted by `Ready.snapshotsWanted` was installed there up to `index`, or has failed. */
  reportSnapshot(_to: ReplicaId, _ok: boolean, _index: number): void {
    throw new Error('being written');
  }

  /**
   * A leader offers a snapshot. True: receive it, then call `installed`, or `installFailed` if it broke off. Until
   * then this replica neither takes appends nor hands out committed entries nor campaigns, and further offers are
   * declined. False: not needed or not legitimate; an answer for the leader may be in the next `Ready`.
   */
  acceptsSnapshot(_from: ReplicaId, _term: number, _meta: SnapshotMeta): boolean {
    throw new Error('being written');
  }

  /** The accepted snapshot is durably in the state machine: the log restarts there, under its configuration. */
  installed(_snapshot: SnapshotMeta): void {
    throw new Error('being written');
  }

  /** Receiving the accepted snapshot broke off and the state machine is as it was before: carry on. */
  installFailed(): void {
    throw new Error('being written');
  }

  status(): RaftStatus {
    throw new Error('being written');
  }
}
