/** Combines the journals of a run's processes, round by round. */
import type { BeginLine, How, Line, NoteLine, Workload } from '../journal/lines.ts';
import type { SeenEvent } from '../workloads/watches.ts';

export interface Operation {
  readonly process: string;
  readonly w: Workload;
  readonly q: object;
  readonly t0: number;
  /** Null: there was no answer. */
  readonly t1: number | null;
  readonly how: How;
  readonly code: string | undefined;
  readonly a: object | undefined;
}

export interface Note {
  readonly process: string;
  readonly w: Workload;
  readonly t: number;
  readonly n: object;
}

/** A change of a key, as the auditor's watch reported it. */
export interface AuditedEvent {
  readonly t: number;
  readonly revision: number;
  readonly key: string;
  /** Null: a delete. */
  readonly value: string | null;
}

/** Everything about the keys of one round. */
export interface Round {
  readonly r: number;
  readonly operations: readonly Operation[];
  readonly notes: readonly Note[];
  /** In revision order. */
  readonly events: readonly AuditedEvent[];
}

interface Life {
  readonly open: Map<number, BeginLine>;
  /** All rounds up to this one are over for the process. Unknown before its first line. */
  over: number;
  ended: boolean;
}

interface Gathering {
  readonly operations: Operation[];
  readonly notes: Note[];
  readonly events: AuditedEvent[];
}

export interface EvidenceEvents {
  /** An operation has ended, or will never end. */
  operation(operation: Operation): void;
  /** An event of a round that was already judged. */
  late(r: number, events: readonly AuditedEvent[]): void;
  /** What the keys of a round hold at the end of the run. */
  left(r: number, pairs: readonly (readonly [key: string, value: string])[]): void;
}

export class Evidence {
  readonly #told: EvidenceEvents;
  readonly #lives = new Map<string, Life>();
  readonly #rounds = new Map<number, Gathering>();
  #next = 0;

  constructor(told: EvidenceEvents) {
    this.#told = told;
  }

  /** A process begins to write, in the current round or later. */
  opened(process: string): void {
    this.#lives.set(process, { open: new Map(), over: -1, ended: false });
  }

  take(process: string, line: Line): void {
    const life = this.#life(process);
    switch (line.e) {
      case 'start':
        life.over = line.r - 1;
        return;
      case 'over':
        life.over = Math.max(life.over, line.r);
        return;
      case 'begin':
        life.open.set(line.id, line);
        return;
      case 'end': {
        const begin = life.open.get(line.id);
        if (begin === undefined) throw new Error(`${process} ended ${line.id}, which never began`);
        life.open.delete(line.id);
        // An answer with an unknown outcome counts as no answer.
        const t1 = line.how === 'unknown' ? null : line.t;
        this.#add(begin, { process, t1, how: line.how, code: line.code, a: line.a });
        return;
      }
      case 'note':
        return this.#note(process, line);
      case 'stop':
        return this.ended(process);
    }
  }

  /** The process is gone: its open operations have an unknown outcome. */
  ended(process: string): void {
    const life = this.#life(process);
    if (life.ended) return;
    life.ended = true;
    for (const begin of life.open.values()) {
      this.#add(begin, { process, t1: null, how: 'unknown', code: 'PROCESS_GONE', a: undefined });
    }
    life.open.clear();
  }

  /**
   * The last round that is over for all processes. -1: there is none. Lines of other processes about it may be unread,
   * but no new ones will be written.
   */
  get overUpTo(): number {
    const over = [...this.#lives.values()].flatMap((life) => (life.ended ? [] : [life.over]));
    return Math.min(Math.max(-1, ...this.#rounds.keys()), ...over);
  }

  /** Returns the rounds up to this one, and forgets them. */
  takeRounds(upTo: number): readonly Round[] {
    const rounds: Round[] = [];
    for (; this.#next <= upTo; this.#next++) {
      rounds.push({ r: this.#next, ...(this.#rounds.get(this.#next) ?? newGathering()) });
      this.#rounds.delete(this.#next);
    }
    return rounds;
  }

  #add(begin: BeginLine, end: Pick<Operation, 'process' | 't1' | 'how' | 'code' | 'a'>): void {
    const { w, q, t: t0, r } = begin;
    const operation: Operation = { w, q, t0, ...end };
    this.#round(r).operations.push(operation);
    this.#told.operation(operation);
  }

  #note(process: string, { w, r, t, n }: NoteLine): void {
    if (w === 'audit' && hasEvents(n)) {
      const events = n.events.map(([revision, key, value]): AuditedEvent => ({ t, revision, key, value }));
      if (r < this.#next) this.#told.late(r, events);
      else this.#round(r).events.push(...events);
      return;
    }
    if (w === 'audit' && hasLeft(n)) return this.#told.left(r, n.left);
    this.#round(r).notes.push({ process, w, t, n });
  }

  #round(r: number): Gathering {
    let round = this.#rounds.get(r);
    if (round === undefined) {
      if (r < this.#next) throw new Error(`something of round ${r} came when it was over`);
      round = newGathering();
      this.#rounds.set(r, round);
    }
    return round;
  }

  #life(process: string): Life {
    const life = this.#lives.get(process);
    if (life === undefined) throw new Error(`nobody knows ${process}`);
    return life;
  }
}

function newGathering(): Gathering {
  return { operations: [], notes: [], events: [] };
}

function hasEvents(n: object): n is { readonly events: readonly SeenEvent[] } {
  return 'events' in n && Array.isArray(n.events);
}

function hasLeft(n: object): n is { readonly left: readonly (readonly [string, string])[] } {
  return 'left' in n && Array.isArray(n.left);
}
