/**
 * The ReadIndex calls of one group (Raft dissertation §6.4).
 *
 * Q1. The calls of one loop turn share one round, which begins after all of them: its context is new and never reused
 *     (traps 7).
 * Q2. A call succeeds only after its round was confirmed and its index is applied here. After the confirmation, losing
 *     the leadership changes nothing: the state at that index is what the call asked for.
 * Q3. Every call is answered exactly once.
 * Q4. A read under a lease needs no round: it must reflect only what was committed when it arrived (core/lease.ts E7).
 */
import { LazyMap } from '@remora/base';
import type { ReadState, Refusal } from '../../../core/types.ts';

export type ReadDone = (refused: Refusal | undefined) => void;

export class ReadQueue {
  readonly #pendingMax: number;
  #queued: ReadDone[] = [];
  readonly #rounds = new LazyMap<number, ReadDone[]>();
  /** Confirmed, by growing index. */
  readonly #confirmed: { readonly index: number; readonly calls: readonly ReadDone[] }[] = [];
  #pending = 0;
  #lastContext = 0;

  constructor(pendingMax: number) {
    this.#pendingMax = pendingMax;
  }

  get pending(): number {
    return this.#pending;
  }

  /** Returns false if the queue is full: the caller answers `queueFull` itself. */
  add(done: ReadDone): boolean {
    if (this.#pending >= this.#pendingMax) return false;
    this.#pending++;
    this.#queued.push(done);
    return true;
  }

  /** A read under a lease: answered once `index` is applied, which may be now. Returns false if the queue is full. */
  addLeased(index: number, applied: number, done: ReadDone): boolean {
    if (index <= applied) {
      done(undefined);
      return true;
    }
    if (this.#pending >= this.#pendingMax) return false;
    this.#pending++;
    this.#confirm(index, [done]);
    return true;
  }

  /** Starts a round for the waiting calls. `begin` returns the reason if there can be none. */
  startRound(begin: (context: number) => Refusal | undefined): void {
    if (this.#queued.length === 0) return;
    const calls = this.#queued;
    this.#queued = [];
    const context = ++this.#lastContext; // Q1
    const refused = begin(context);
    if (refused === undefined) this.#rounds.set(context, calls);
    else this.#answer(calls, refused);
  }

  confirmed(states: readonly ReadState[]): void {
    for (const { context, index } of states) {
      const calls = this.#rounds.get(context);
      if (calls === undefined) continue;
      this.#rounds.delete(context);
      this.#confirm(index, calls);
    }
  }

  #confirm(index: number, calls: readonly ReadDone[]): void {
    const last = this.#confirmed.at(-1);
    this.#confirmed.push({ index: Math.max(index, last?.index ?? 0), calls });
  }

  dropped(contexts: readonly number[]): void {
    for (const context of contexts) {
      const calls = this.#rounds.get(context);
      this.#rounds.delete(context);
      if (calls !== undefined) this.#answer(calls, 'notLeader');
    }
  }

  /** Answers what is confirmed up to `applied` (Q2). */
  applied(applied: number): void {
    for (let first = this.#confirmed[0]; first !== undefined && first.index <= applied; first = this.#confirmed[0]) {
      this.#confirmed.shift();
      this.#answer(first.calls, undefined);
    }
  }

  /** The group is closed: nothing is answered any more. */
  dropAll(): void {
    const calls = [
      ...this.#confirmed.flatMap((item) => item.calls),
      ...[...this.#rounds.values()].flat(),
      ...this.#queued,
    ];
    this.#confirmed.length = 0;
    this.#rounds.clear();
    this.#queued = [];
    this.#answer(calls, 'notLeader');
  }

  #answer(calls: readonly ReadDone[], refused: Refusal | undefined): void {
    this.#pending -= calls.length;
    for (const done of calls) done(refused);
  }
}
