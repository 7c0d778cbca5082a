// RaftLog with entries that leave memory, against a list of everything.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ENTRY_MEMORY_BYTES, ENTRY_OVERHEAD_BYTES, RaftLog } from './log.ts';
import type { Entry, LogPosition } from './types.ts';

/**
 * Everything since the beginning, and what is durable: a mark is a copy of the log, and counts as far as it was kept.
 */
class Model {
  start: LogPosition = { index: 0, term: 0 };
  entries: Entry[] = [];
  durable = 0;
  handedOut = 0;
  marks: number[] = [];
  evicted = 0;

  get last(): number {
    return this.start.index + this.entries.length;
  }

  term(index: number): number | undefined {
    return index === this.start.index ? this.start.term : this.entries[index - this.start.index - 1]?.term;
  }

  truncate(last: number): void {
    this.entries = this.entries.slice(0, last - this.start.index);
    this.durable = Math.min(this.durable, last);
    this.handedOut = Math.min(this.handedOut, last);
    this.marks = this.marks.map((mark) => Math.min(mark, last));
    this.evicted = Math.min(this.evicted, last);
  }

  conflict(index: number, term: number): LogPosition {
    for (let i = Math.min(index, this.last); i > 0; i--) {
      const here = this.term(i);
      if (here === undefined) return { index: i, term: 0 };
      if (here <= term) return { index: i, term: here };
    }
    return { index: 0, term: 0 };
  }
}

class Pair {
  log = new RaftLog({ index: 0, term: 0 }, []);
  readonly model = new Model();
  #term = 1;
  #value = 0;

  perform(number: number): void {
    const { log, model } = this;
    const roll = number % 16;
    const a = Math.floor(number / 16) % 8;
    const b = Math.floor(number / 128) % 8;
    if (roll < 5) this.#append(a);
    else if (roll < 7) this.#conflict(a, b);
    else if (roll < 9) {
      expect(log.openMark()).toEqual(model.entries.slice(model.handedOut - model.start.index));
      model.handedOut = model.last;
      model.marks.push(model.last);
    } else if (roll < 11 && model.marks.length > 0) {
      log.closeMark();
      model.durable = Math.max(model.durable, model.marks.shift() ?? 0);
    } else if (roll < 13) {
      const index = model.start.index + a * 3;
      log.evictTo(index);
      model.evicted = Math.max(model.evicted, Math.min(index, model.durable));
    } else if (roll === 13) this.#compact(a);
    else if (roll === 14 && a === 0) this.#restart(b);
    else if (roll === 15) this.#reopen(a);
  }

  #entries(first: number, count: number): Entry[] {
    return Array.from({ length: count }, (_, i) => {
      const value = this.#value++;
      return {
        index: first + i,
        term: this.#term,
        type: value % 7 === 0 ? 'conf' : 'normal',
        data: Buffer.alloc(value % 5),
      };
    });
  }

  #append(count: number): void {
    const added = this.#entries(this.model.last + 1, count);
    for (const entry of added) this.log.append(entry);
    this.model.entries.push(...added);
  }

  #conflict(back: number, count: number): void {
    const { log, model } = this;
    const keep = Math.max(model.start.index, model.last - back);
    this.#term++;
    // What is held comes first, as a leader would send it; then what is new in its place.
    const from = Math.max(model.start.index, keep - 2);
    const held = model.entries.slice(from - model.start.index, keep - model.start.index);
    const added = this.#entries(keep + 1, count);
    log.accept([...held, ...added], model.start.index);
    if (count === 0) return;
    model.truncate(keep);
    model.entries.push(...added);
  }

  #compact(ahead: number): void {
    const { log, model } = this;
    const index = Math.min(model.start.index + ahead, model.durable);
    log.compactTo(index);
    const term = model.term(index);
    if (index <= model.start.index || term === undefined) return;
    model.entries = model.entries.slice(index - model.start.index);
    model.start = { index, term };
    model.evicted = Math.max(model.evicted, index);
  }

  #restart(ahead: number): void {
    const { log, model } = this;
    const start = { index: model.last + 1 + ahead, term: ++this.#term };
    log.restart(start);
    model.truncate(model.start.index);
    model.start = start;
    model.durable = start.index;
    model.handedOut = start.index;
    model.evicted = start.index;
  }

  /** As after a restart of the node: everything is durable, and only the last entries are in memory. */
  #reopen(inMemory: number): void {
    const { model } = this;
    if (model.durable < model.last || model.marks.length > 0) return;
    const kept = Math.min(inMemory, model.entries.length);
    const terms: LogPosition[] = [];
    for (const { index, term } of model.entries) if (terms.at(-1)?.term !== term) terms.push({ index, term });
    const confs = model.entries.filter((e) => e.type === 'conf').map((e) => e.index);
    const bytes = model.entries.reduce((sum, e) => sum + e.data.length + ENTRY_OVERHEAD_BYTES, 0);
    const outline = { terms, confs, lastIndex: model.last, bytes };
    this.log = new RaftLog(model.start, kept === 0 ? [] : model.entries.slice(-kept), outline);
    model.evicted = model.last - kept;
  }

  check(): void {
    const { log, model } = this;
    const inMemory = model.entries.filter((e) => e.index > model.evicted);
    const bytes = inMemory.reduce((sum, e) => sum + e.data.length, 0);
    const all = Number.POSITIVE_INFINITY;
    same(
      'position',
      show(log.startIndex, log.lastIndex, log.lastTerm),
      show(model.start.index, model.last, model.term(model.last)),
    );
    same('durable', show(log.stableIndex, log.hasUnpersisted), show(model.durable, model.handedOut < model.last));
    same('window', log.windowStart, model.last - inMemory.length);
    const window = log.slice(log.windowStart + 1, model.last, all);
    same('entries', window.length, inMemory.length);
    for (const [i, entry] of window.entries()) same('entry', entry, inMemory[i]);
    same('memory', log.memoryBytes, bytes + inMemory.length * ENTRY_MEMORY_BYTES);
    same('bytes', log.bytesFrom(log.windowStart + 1), bytes + inMemory.length * ENTRY_OVERHEAD_BYTES);
    same('all bytes', log.bytesFrom(model.start.index + 1) >= log.bytesFrom(log.windowStart + 1), true);
    let lastConf = Number.NEGATIVE_INFINITY;
    for (let i = Math.max(0, model.start.index - 2); i <= model.last + 2; i++) {
      same('term', log.term(i), model.term(i));
      for (const term of [0, 1, this.#term >> 1, this.#term]) {
        const [found, expected] = [log.findConflictByTerm(i, term), model.conflict(i, term)];
        same('conflict', show(found.index, found.term), show(expected.index, expected.term));
      }
      if (model.entries[i - model.start.index - 1]?.type === 'conf') lastConf = i;
      same('conf', log.hasConf(i - 3, i), lastConf > i - 3);
    }
  }
}

function show(...parts: readonly unknown[]): string {
  return parts.join(' ');
}

function same(what: string, found: unknown, expected: unknown): void {
  if (found !== expected) throw new Error(`${what}: ${found}, expected ${expected}`);
}

test('a log whose entries leave memory answers as one that keeps them all (G1 to G4)', () => {
  fc.assert(
    fc.property(
      fc.noBias(fc.array(fc.nat({ max: 1023 }), { minLength: 20, maxLength: 80, size: 'max' })),
      (numbers) => {
        const pair = new Pair();
        for (const number of numbers) {
          pair.perform(number);
          pair.check();
        }
      },
    ),
    { numRuns: 300 },
  );
});
