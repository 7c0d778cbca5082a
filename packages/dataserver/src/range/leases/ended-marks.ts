/**
 * A leader's watch over the marks of locks (M1 to M4 of the lock layer). Each mark keeps its session attached to a lock
 * on which there may be no further command, and must be removed when its end has passed.
 *
 * EM1. Nothing is cleared here: a command is proposed that clears some marks and changes nothing else. It needs no
 *      term: a mark whose end has passed has no effect, whichever node leads when the command is applied.
 * EM2. The rows contain the marks. A new leader, or one whose range has other keys now, searches the rows, a bounded
 *      slice at a time; marks that are left meanwhile are reported to it.
 * EM3. It knows at most KNOWN_MAX locks. It finds any others in the rows again when it has cleared most of these.
 */
import { type Bytes, binaryString, type Clock, keyAfter, LazyMap, type Span, type Timer } from '@remora/base';
import {
  clearingOfMarks,
  firstMark,
  type LockId,
  type LockView,
  lockPrefix,
  type MarkedUntil,
  markOfRow,
} from '@remora/lock';
import type { Command } from '@remora/protocol';
import { intersection } from '../../state/bounds.ts';
import { LOCKS } from '../../state/leases/attachments.ts';

export interface EndedMarksDeps {
  readonly clock: Clock;
  readonly view: Pick<LockView, 'scan'>;
  /** The keys that the range has. */
  readonly routed: () => Span;
  /** The time with which entries are stamped. */
  readonly rangeTimeMs: () => number;
  /** `done` is called when the command was applied, or never will be. */
  readonly propose: (command: Command, done: () => void) => void;
}

interface Marked {
  readonly lock: LockId;
  /** No mark of the lock ends before this time. */
  dueMs: number;
  /** A command was proposed, and is being decided. */
  clearing: boolean;
}

/** EM3 */
const KNOWN_MAX = 100_000;
/** Commands proposed and not decided at a time: few, so that they delay no other commands. */
const CLEARING_MAX = 250;
const SWEEP_MS = 100;
/** Locks that one sweep examines, and rows that it searches for marks. */
const LOOKED_MAX = 1_000;
const SEARCHED_MAX = 500;

export class EndedMarks {
  readonly #deps: EndedMarksDeps;
  readonly #known = new LazyMap<string, Marked>();
  /** Continues from sweep to sweep: new locks come at the end. */
  #turn = this.#known.entries();
  /** EM2. Where the search continues; undefined: it is over. */
  #searchFrom: Bytes | undefined;
  /** EM3. There was no room for a reported mark. */
  #missed = false;
  #serving = false;
  /** Grows with each start: earlier proposals no longer count. */
  #life = 0;
  #clearing = 0;
  #timer: Timer | undefined;

  constructor(deps: EndedMarksDeps) {
    this.#deps = deps;
  }

  /** EM2. Called once this replica leads and has applied an entry of its own term. */
  start(): void {
    this.stop();
    this.#serving = true;
    this.#searchFrom = LOCKS.start;
    this.#arm();
  }

  stop(): void {
    this.#serving = false;
    this.#life++;
    this.#clearing = 0;
    this.#known.clear();
    this.#turn = this.#known.entries();
    this.#searchFrom = undefined;
    this.#missed = false;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** EM2. */
  keysChanged(): void {
    if (this.#serving) this.start();
  }

  /** A mark was applied on this replica. */
  left(mark: MarkedUntil): void {
    if (!this.#serving) return;
    this.#note(mark);
    this.#arm();
  }

  #note({ lock, deadlineMs }: MarkedUntil): void {
    const name = binaryString(lockPrefix(lock));
    const marked = this.#known.get(name);
    if (marked !== undefined) marked.dueMs = Math.min(marked.dueMs, deadlineMs);
    else if (this.#known.size < KNOWN_MAX) this.#known.set(name, { lock, dueMs: deadlineMs, clearing: false });
    else this.#missed = true;
  }

  #arm(): void {
    const isIdle = this.#known.size === 0 && this.#searchFrom === undefined && !this.#missed;
    if (this.#timer !== undefined || isIdle) return;
    this.#timer = this.#deps.clock.setTimer(SWEEP_MS, () => {
      this.#timer = undefined;
      this.#search();
      this.#sweep();
      this.#arm();
    });
  }

  /** EM2, EM3. */
  #search(): void {
    if (this.#searchFrom === undefined && this.#missed && this.#known.size < KNOWN_MAX / 2) {
      this.#missed = false;
      this.#searchFrom = LOCKS.start;
    }
    const start = this.#searchFrom;
    const span = start && intersection(this.#deps.routed(), { start, end: LOCKS.end });
    const rows = span === undefined ? [] : this.#deps.view.scan(span.start, span.end, SEARCHED_MAX);
    for (const { key } of rows) {
      const mark = markOfRow(key);
      if (mark !== undefined) this.#note(mark);
    }
    const last = rows.at(-1);
    this.#searchFrom = rows.length < SEARCHED_MAX || last === undefined ? undefined : keyAfter(last.key);
  }

  #sweep(): void {
    const nowMs = this.#deps.rangeTimeMs();
    for (let left = Math.min(LOOKED_MAX, this.#known.size); left > 0 && this.#clearing < CLEARING_MAX; left--) {
      const [name, marked] = this.#next() ?? [];
      if (name === undefined || marked === undefined) return;
      if (!marked.clearing && marked.dueMs < nowMs) this.#see(name, marked, nowMs);
    }
  }

  #next(): [string, Marked] | undefined {
    const next = this.#turn.next();
    if (!next.done) return next.value;
    this.#turn = this.#known.entries();
    const first = this.#turn.next();
    return first.done ? undefined : first.value;
  }

  /** Some marks may be gone, or end later. */
  #see(name: string, marked: Marked, nowMs: number): void {
    const first = firstMark(this.#deps.view, marked.lock);
    if (first === undefined) this.#known.delete(name);
    else if (first.deadlineMs >= nowMs) marked.dueMs = first.deadlineMs;
    else this.#clear(marked, clearingOfMarks(marked.lock, first.owner));
  }

  /** If a command failed or left some marks, it is proposed again when it is this lock's turn. */
  #clear(marked: Marked, command: Extract<Command, { type: 'lock' }>['command']): void {
    const life = this.#life;
    marked.clearing = true;
    this.#clearing++;
    this.#deps.propose({ type: 'lock', command }, () => {
      if (life !== this.#life) return;
      this.#clearing--;
      marked.clearing = false;
    });
  }
}
