/**
 * Determines how far a group's log may be compacted: after a checkpoint, a tail of entries stays for followers that
 * lag, and no entry that a snapshot in progress needs is dropped (traps 3).
 *
 * Positions are remembered in steps, not per entry, so the tail kept may exceed the limits by one step. There are at
 * most `STEPS_MAX` steps. If more would be needed, for example while a snapshot holds the log for long, every second
 * one is dropped.
 */
import { LazySet } from '@remora/base';
import type { LogOutline, LogPosition } from '../../../core/types.ts';

interface Step extends LogPosition {
  /** Entry bytes from the beginning of the count up to this position. */
  readonly bytes: number;
}

const STEPS_MAX = 1024;

/** A claim on the log from `index` on. */
export interface TailHold {
  readonly index: number;
  /** Monotonic milliseconds at which it ends automatically; absent while a snapshot is in progress. */
  untilMs: number | undefined;
}

export class LogTail {
  readonly #limits: { readonly entries: number; readonly bytes: number };
  readonly #stepEntries: number;
  readonly #stepBytes: number;
  readonly #holds = new LazySet<TailHold>();
  #steps: Step[] = [];
  /** Changed in place: it moves with every entry. */
  readonly #last: { -readonly [K in keyof Step]: Step[K] };
  #compacted: number;
  #checkpoint: LogPosition = { index: 0, term: 0 };

  constructor(limits: { readonly entries: number; readonly bytes: number }, start: LogPosition) {
    this.#limits = limits;
    this.#stepEntries = Math.max(1, Math.floor(limits.entries / 64));
    this.#stepBytes = Math.max(1, Math.floor(limits.bytes / 64));
    this.#last = { index: start.index, term: start.term, bytes: 0 };
    this.#compacted = start.index;
  }

  /** The log extends to `position`, with `bytes` of entries since the previous position. */
  advance(position: LogPosition, bytes: number): void {
    const last = this.#last;
    last.index = position.index;
    last.term = position.term;
    last.bytes += bytes;
    const step = this.#steps[this.#steps.length - 1];
    if (
      step === undefined ||
      last.index - step.index >= this.#stepEntries ||
      last.bytes - step.bytes >= this.#stepBytes
    ) {
      this.#steps.push({ index: last.index, term: last.term, bytes: last.bytes });
      if (this.#steps.length > STEPS_MAX) this.#steps = this.#steps.filter((_, i) => i % 2 === 0); // the newest stays
    }
  }

  /** The number of remembered positions. */
  get steps(): number {
    return this.#steps.length;
  }

  /** The log's contents at the start, up to the applied index; its bytes are assumed to be spread evenly. */
  recovered({ terms, lastIndex, bytes }: LogOutline, applied: number): void {
    const from = this.#last.index;
    const perEntry = bytes / Math.max(1, lastIndex - from);
    const stride = Math.max(this.#stepEntries, Math.ceil((applied - from) / STEPS_MAX));
    let run = 0;
    for (
      let index = Math.min(from + stride, applied);
      index > this.#last.index;
      index = Math.min(index + stride, applied)
    ) {
      while (run + 1 < terms.length && (terms[run + 1]?.index ?? 0) <= index) run++;
      this.advance({ index, term: terms[run]?.term ?? 0 }, Math.round((index - this.#last.index) * perEntry));
    }
  }

  /** The log restarts after `position`. */
  restart(position: LogPosition): void {
    this.#steps = [];
    this.#last.index = position.index;
    this.#last.term = position.term;
    this.#compacted = position.index;
    this.#checkpoint = position;
  }

  checkpointed(position: LogPosition): void {
    if (position.index > this.#checkpoint.index) this.#checkpoint = position;
  }

  /** Holds whose end is not known yet. */
  get holds(): number {
    let holds = 0;
    for (const { untilMs } of this.#holds) if (untilMs === undefined) holds++;
    return holds;
  }

  hold(index: number): TailHold {
    const hold: TailHold = { index, untilMs: undefined };
    this.#holds.add(hold);
    return hold;
  }

  /** The furthest position up to which the log may be compacted now; undefined if that would gain nothing. */
  takeCompaction(nowMs: number): LogPosition | undefined {
    const found = this.#furthest(Math.min(this.#checkpoint.index, this.#heldFrom(nowMs)));
    if (found === undefined || found.index <= this.#compacted) return undefined;
    this.#compacted = found.index;
    this.#steps = this.#steps.filter((step) => step.index > found.index);
    return { index: found.index, term: found.term };
  }

  /** The newest position up to `limit` that leaves the whole tail behind it. */
  #furthest(limit: number): LogPosition | undefined {
    const end: Step = { ...this.#checkpoint, bytes: this.#bytesAt(this.#checkpoint.index) };
    const fits = (step: Step) => step.index <= limit && this.#outsideTail(step, end);
    return fits(end) ? end : this.#steps.findLast((step) => step.index < end.index && fits(step));
  }

  #outsideTail(step: Step, end: Step): boolean {
    return end.index - step.index >= this.#limits.entries || end.bytes - step.bytes >= this.#limits.bytes;
  }

  #bytesAt(index: number): number {
    let bytes = 0;
    for (const step of this.#steps) {
      if (step.index > index) break;
      bytes = step.bytes;
    }
    return bytes;
  }

  #heldFrom(nowMs: number): number {
    let least = Number.POSITIVE_INFINITY;
    for (const hold of this.#holds) {
      if (hold.untilMs !== undefined && hold.untilMs <= nowMs) this.#holds.delete(hold);
      else least = Math.min(least, hold.index);
    }
    return least;
  }
}
