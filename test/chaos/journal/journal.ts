/**
 * The journal of one process. It writes lines (J2), and knows which operations of each round are still in progress
 * (J3).
 */
import { openSync, writeSync } from 'node:fs';
import { type How, type Line, NS_PER_MS, type Workload } from './lines.ts';

export interface JournalOptions {
  readonly file: string;
  /** The start of the run, by `process.hrtime.bigint()`. */
  readonly beganNs: bigint;
  readonly roundMs: number;
}

/** An operation in progress. The first answer counts. */
export interface OpenOperation {
  end(how: How, told?: { readonly code?: string; readonly a?: object }): void;
}

export class Journal {
  readonly #fd: number;
  readonly #beganNs: bigint;
  readonly #roundNs: number;
  /** The number of operations in progress, by round. */
  readonly #open = new Map<number, number>();
  #nextOver: number;
  #nextId = 1;

  constructor({ file, beganNs, roundMs }: JournalOptions) {
    this.#fd = openSync(file, 'a');
    this.#beganNs = beganNs;
    this.#roundNs = roundMs * NS_PER_MS;
    this.#nextOver = this.round;
    this.#write({ e: 'start', r: this.#nextOver });
  }

  get nowNs(): number {
    return Number(process.hrtime.bigint() - this.#beganNs);
  }

  /** The current round. */
  get round(): number {
    return Math.floor(this.nowNs / this.#roundNs);
  }

  /** How long the current round still lasts. */
  get roundLeftMs(): number {
    return -this.msSinceEndOf(this.round);
  }

  /** Negative if it has not ended yet. */
  msSinceEndOf(r: number): number {
    return (this.nowNs - (r + 1) * this.#roundNs) / NS_PER_MS;
  }

  begin(w: Workload, r: number, q: object): OpenOperation {
    const id = this.#nextId++;
    const release = this.hold(r);
    this.#write({ e: 'begin', id, w, r, t: this.nowNs, q });
    let ended = false;
    return {
      end: (how, told) => {
        if (ended) return;
        ended = true;
        this.#write({ e: 'end', id, t: this.nowNs, how, ...told });
        release();
      },
    };
  }

  note(w: Workload, r: number, n: object): void {
    this.#write({ e: 'note', w, r, t: this.nowNs, n });
  }

  /** The round is not over for this process until the returned function is called. */
  hold(r: number): () => void {
    this.#open.set(r, (this.#open.get(r) ?? 0) + 1);
    return () => {
      const left = (this.#open.get(r) ?? 1) - 1;
      if (left === 0) this.#open.delete(r);
      else this.#open.set(r, left);
    };
  }

  /** Must be called now and then: writes which rounds are over. */
  tick(): void {
    const first = Math.min(this.round, ...this.#open.keys());
    for (; this.#nextOver < first; this.#nextOver++) this.#write({ e: 'over', r: this.#nextOver });
  }

  /** Nothing is in progress, and nothing will follow. */
  stop(): void {
    this.#write({ e: 'stop' });
  }

  #write(line: Line): void {
    writeSync(this.#fd, `${JSON.stringify(line)}\n`);
  }
}
