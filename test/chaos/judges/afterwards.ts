/** What may still happen to the keys of rounds that were judged, and what the keys hold at the end of the run. */
import { type Finding, violation } from '../../checkers/index.ts';
import type { AuditedEvent, Round } from './evidence.ts';
import { askedOf } from './records.ts';

const READER = 'reader';

interface Settled {
  /** What the reader saw. Absent: the key did not exist. */
  readonly values: ReadonlyMap<string, string>;
  /** By key: the possible later effects of writes with an unknown outcome. Null: a delete. */
  readonly may: ReadonlyMap<string, ReadonlySet<string | null>>;
  /** The effects that did happen. */
  readonly came: Map<string, string | null>;
}

export class Afterwards {
  readonly #rounds = new Map<number, Settled>();

  remember(round: Round): void {
    const values = new Map<string, string>();
    const may = new Map<string, Set<string | null>>();
    for (const { q, how, a } of [...askedOf(round, 'registers'), ...askedOf(round, 'lists')]) {
      if (q.c === READER && typeof a?.out === 'string') values.set(q.k, a.out);
      if (how !== 'unknown') continue;
      const set = may.get(q.k) ?? new Set();
      may.set(q.k, set.add(q.op === 'del' ? null : String(q.v)));
    }
    this.#rounds.set(round.r, { values, may, came: new Map() });
  }

  /** A change after the reader's read must come from a write with an unknown outcome. */
  late(r: number, events: readonly AuditedEvent[]): readonly Finding[] {
    const settled = this.#rounds.get(r);
    return events.flatMap(({ key, value, revision }) => {
      if (settled === undefined || !isJudged(key)) return [];
      settled.came.set(key, value);
      if (settled.may.get(key)?.has(value) === true) return [];
      const what = `${key} ${value === null ? 'was deleted' : `was given ${value}`} at revision ${revision}`;
      return [violation('writes: nothing else happened', `${what}, after all requests for it had ended`)];
    });
  }

  /** At the end, the keys of a round must hold what they held when the round was over. */
  left(r: number, pairs: readonly (readonly [key: string, value: string])[]): readonly Finding[] {
    const settled = this.#rounds.get(r);
    if (settled === undefined) return [violation('writes: nothing is lost', `round ${r} was not judged`)];
    const now = new Map(pairs.filter(([key]) => isJudged(key)));
    const keys = new Set([...now.keys(), ...settled.values.keys()]);
    return [...keys].flatMap((key) => {
      const value = now.get(key) ?? null;
      const expected = settled.came.has(key) ? settled.came.get(key) : (settled.values.get(key) ?? null);
      if (value === expected) return [];
      return [
        violation('writes: nothing is lost', `${key} was ${expected} after its round, and is ${value} at the end`),
      ];
    });
  }
}

function isJudged(key: string): boolean {
  return key.startsWith('register/') || key.startsWith('list/');
}
