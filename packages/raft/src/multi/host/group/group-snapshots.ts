/**
 * One local replica's part in snapshots: snapshots of its state machine for others, and at most one that it receives.
 *
 * N1. While a snapshot is being received, nothing is applied, and the core accepts no appends.
 * N2. A snapshot is taken between two applies, and the log after it is kept from then on (traps 3).
 * N3. After `accept` has returned true, exactly one of `installed` and `failed` follows.
 */
import { isMember } from '../../../core/membership/membership.ts';
import type { RaftCore } from '../../../core/raft.ts';
import type { ConfState, LogPosition, ReplicaId } from '../../../core/types.ts';
import type { SnapshotHeader, SnapshotReceiver, StateMachine } from '../../ports.ts';
import type { CacheShare } from '../entries/entry-cache.ts';
import type { HostContext } from '../host-context.ts';
import { type OutgoingSnapshot, OutgoingSnapshots, Reception } from '../snapshots/snapshots-in-flight.ts';
import type { ApplyQueue } from './apply-queue.ts';
import type { LogTail } from './log-tail.ts';

export interface GroupSnapshotsOptions {
  readonly host: Pick<HostContext, 'clock' | 'options'>;
  readonly core: RaftCore;
  readonly stateMachine: StateMachine;
  readonly apply: ApplyQueue;
  readonly tail: LogTail;
  readonly cached: CacheShare;
  readonly applied: () => LogPosition;
  /** An installation has moved the state machine to this position. */
  readonly restarted: (position: LogPosition) => void;
  /** The core has something for the next turn. */
  readonly changed: () => void;
}

export class GroupSnapshots {
  readonly #group: GroupSnapshotsOptions;
  readonly #outgoing = new OutgoingSnapshots();
  #receiving: Reception | undefined;
  #closed = false;

  constructor(group: GroupSnapshotsOptions) {
    this.#group = group;
  }

  // ---------------------------------------------------------------------------------------------- out

  /** Resolves with a picture of the state machine (N2); undefined if this replica no longer leads. */
  take(to: ReplicaId): Promise<OutgoingSnapshot | undefined> {
    const { apply, core, stateMachine, tail } = this.#group;
    return apply.whenIdle(() => {
      if (this.#closed || core.role !== 'leader' || !isMember(core.conf, to)) return undefined;
      const snapshot = stateMachine.snapshot();
      const hold = tail.hold(snapshot.meta.index);
      return { snapshot, hold, term: core.term, signal: this.#outgoing.begin(to) };
    });
  }

  sent(to: ReplicaId, outgoing: OutgoingSnapshot, ok: boolean): void {
    const { core, host } = this.#group;
    this.#outgoing.ended(to, outgoing.signal);
    outgoing.hold.untilMs = host.clock.monotonicMs() + (ok ? host.options.snapshotHoldMs : 0);
    if (this.#closed || core.role !== 'leader' || core.term !== outgoing.term) return;
    core.reportSnapshot(to, ok, outgoing.snapshot.meta.index);
    this.#group.changed();
  }

  // ---------------------------------------------------------------------------------------------- in

  get receiving(): boolean {
    return this.#receiving !== undefined;
  }

  /** Returns whether the offer is wanted; if so, nothing is applied from now on (N1, N3). */
  accept(header: SnapshotHeader, abort: (reason: string) => void): boolean {
    if (this.#closed || this.#receiving !== undefined) return false;
    const accepted = this.#group.core.acceptsSnapshot(header.from, header.term, header.meta);
    this.#group.changed();
    if (accepted) this.#receiving = new Reception(header.term, abort);
    return accepted;
  }

  pauseApply(): Promise<void> {
    return this.#group.apply.pause();
  }

  /** Begins the installation; the state machine gets no other calls meanwhile. */
  install(meta: SnapshotHeader['meta']): SnapshotReceiver {
    return this.#group.stateMachine.install(meta);
  }

  installed(meta: SnapshotHeader['meta']): void {
    this.#endReceiving();
    if (this.#closed) return;
    const { restarted, tail, core, cached, apply, changed } = this.#group;
    restarted({ index: meta.index, term: meta.term });
    tail.restart(meta);
    core.installed(meta);
    cached.update();
    apply.unpause(meta);
    changed();
  }

  failed(): void {
    this.#endReceiving();
    if (this.#closed) return;
    const { core, apply, applied, changed } = this.#group;
    core.installFailed();
    apply.unpause(applied());
    changed();
  }

  #endReceiving(): void {
    this.#receiving?.end();
    this.#receiving = undefined;
  }

  // ---------------------------------------------------------------------------------------------- what ends them early

  roleChanged({ leads, term }: { readonly leads: boolean; readonly term: number }): void {
    if (!leads) this.#outgoing.giveUp('leadership was lost');
    this.#receiving?.termBegan(term);
  }

  membership(conf: ConfState): void {
    this.#outgoing.membership(conf);
  }

  /** Ends all of them. Resolves when none is being installed any more. */
  close(reason: string): Promise<void> {
    this.#closed = true;
    this.#outgoing.giveUp(reason);
    this.#receiving?.abort(reason);
    return this.#receiving?.ended ?? Promise.resolve();
  }
}
