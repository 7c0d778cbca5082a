/**
 * The snapshots that one group sends and receives, and the events that end them early.
 *
 * U1. An outgoing snapshot ends with the leadership that wanted it, with the group, and with the membership of its
 *     receiver (traps 3).
 * U2. An incoming snapshot ends when a newer term begins: its sender no longer leads, and the new leader offers its
 *     own.
 */
import { type JoinedSignal, joinSignals } from '@remora/base';
import { isMember } from '../../../core/membership/membership.ts';
import type { ConfState, ReplicaId } from '../../../core/types.ts';
import type { StateMachineSnapshot } from '../../ports.ts';
import type { TailHold } from '../group/log-tail.ts';

export interface OutgoingSnapshot {
  readonly snapshot: StateMachineSnapshot;
  readonly hold: TailHold;
  readonly term: number;
  /** Aborted when the leadership of `term` ends, or the membership of the receiver. */
  readonly signal: AbortSignal;
}

interface Sending extends JoinedSignal {
  readonly membership: AbortController;
}

/** The outgoing snapshots (U1). */
export class OutgoingSnapshots {
  /** Created with the first snapshot. */
  #leading: AbortController | undefined;
  readonly #sending = new Map<ReplicaId, Sending>();

  begin(to: ReplicaId): AbortSignal {
    const membership = new AbortController();
    this.#leading ??= new AbortController();
    const { signal, letGo } = joinSignals([this.#leading.signal, membership.signal]);
    this.#sending.get(to)?.letGo(); // Cancelled before it was sent: a receiver gets one at a time.
    this.#sending.set(to, { membership, signal, letGo });
    return signal;
  }

  /** The snapshot that began with `signal` is over. */
  ended(to: ReplicaId, signal: AbortSignal): void {
    const sending = this.#sending.get(to);
    if (sending?.signal !== signal) return;
    sending.letGo();
    this.#sending.delete(to);
  }

  membership(conf: ConfState): void {
    for (const [to, { membership }] of this.#sending) {
      if (!isMember(conf, to)) membership.abort(new Error(`replica ${to} was removed`));
    }
  }

  /** Leadership is lost, or the group ends. */
  giveUp(reason: string): void {
    this.#leading?.abort(new Error(reason));
    this.#leading = undefined;
  }
}

/** The incoming snapshot (U2). */
export class Reception {
  readonly abort: (reason: string) => void;
  /** Resolves when the state machine is done with it. */
  readonly ended: Promise<void>;
  end: () => void = () => undefined;
  readonly #term: number;

  constructor(term: number, abort: (reason: string) => void) {
    this.#term = term;
    this.abort = abort;
    this.ended = new Promise((resolve) => {
      this.end = resolve;
    });
  }

  termBegan(term: number): void {
    if (term > this.#term) this.abort(`term ${term} began`);
  }
}
