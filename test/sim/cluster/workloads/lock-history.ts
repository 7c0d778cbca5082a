/**
 * The cluster's answers to users of locks, as a history of objects with one holder each (`lockModel`). In addition to
 * what holders rely on (`lock-uses.ts`) it checks the answers themselves: those that report that a lock is taken, or
 * still held.
 *
 * A1. An owner that asked and was not granted the lock may have been granted it for a moment, until its acquire was
 *     taken back: an acquire of unknown outcome. Only a try that failed without an answer had no effect (ask.ts G1).
 * A2. A grant ends with an acknowledged release; otherwise at some unknown time or never: with its session, by a
 *     release whose answer was lost, or by one that the SDK retries.
 * A3. An owner that enters again, or is refused because it is too deep inside, learns that its grant is current. If the
 *     grant is not, entering again is an acquire like any other, which the SDK takes back.
 * A4. If a grant is taken away by force before its owner learned of it, the owner still asks, and may be granted the
 *     lock again: for each forced release while it asks it may have held the lock once more.
 * A5. A forced release itself is not in the history: it names no version, so everything that it may have ended would
 *     have to be tried. Any grant may end at any time (A2), which explains as much.
 */
import type { ErrorCode } from '@remora/base';
import type { HeldLock } from 'remora';
import {
  checkLinearizable,
  type HistoryRecord,
  HistoryRecorder,
  lockModel,
  type OpenRequest,
} from '../../../checkers/index.ts';
import { Violation } from '../../common/violation.ts';
import type { Answer } from './ask.ts';

/** Codes with which a single request ends that never reached a range. */
const UNHEARD: ReadonlySet<ErrorCode> = new Set([
  'UNAVAILABLE',
  'NOT_LEADER',
  'RESOURCE_EXHAUSTED',
  'DEADLINE_EXCEEDED',
]);

/** For each lock; a decidable one takes hundreds. */
const STATES_MAX = 50_000;

/** A lock, and the owner of one acquire: no other acquire has this name. */
interface Owned {
  readonly lock: string;
  readonly owner: string;
}

export class LockHistory {
  readonly #history: HistoryRecorder;
  /** By owner: its grant, which may end at any time (A2). */
  readonly #granted = new Map<HistoryRecord['c'], { readonly version: number; readonly end: OpenRequest }>();
  #lastNs = 0;
  #reentries = 0;

  /** `nowNs` may stand still while things happen one after the other; here each gets a time of its own. */
  constructor(nowNs: () => number) {
    this.#history = new HistoryRecorder(() => {
      this.#lastNs = Math.max(this.#lastNs + 1, nowNs());
      return this.#lastNs;
    });
  }

  records(): readonly HistoryRecord[] {
    const records = this.#history.records().map((record) => {
      const version = this.#granted.get(record.c)?.version;
      return record.op === 'release' && record.v === undefined && version !== undefined
        ? { ...record, v: version }
        : record;
    });
    const told = records.filter(({ op }) => op !== 'force'); // A5
    return [...told, ...unheard(records)].sort((a, b) => a.t0 - b.t0);
  }

  /** @throws Violation if a lock cannot have answered like that, or if that could not be decided. */
  check(): void {
    const { result, explanation } = checkLinearizable(lockModel, this.records(), { statesMax: STATES_MAX });
    if (result !== 'ok') throw new Violation('linearizable locks', explanation);
  }

  /** `tries`: it asks once, and learns whether the lock is taken. */
  async acquire(
    { lock, owner, tries }: Owned & { readonly tries: boolean },
    ask: () => Promise<Answer<HeldLock | undefined>>,
  ): Promise<Answer<HeldLock | undefined>> {
    const { acquire, end } = this.#asks(lock, owner);
    const answer = await ask();
    if (answer.type === 'answer' && answer.value !== undefined) {
      acquire.done({ ok: true, out: answer.value.version });
      this.#granted.set(owner, { version: answer.value.version, end });
    } else if (answer.type === 'answer') {
      acquire.done({ ok: false });
      end.drop();
    } else if (tries && isUnheard(answer)) {
      acquire.drop();
      end.drop();
    }
    return answer;
  }

  /** The release of the outermost level. */
  async release(
    { lock, owner }: Owned,
    { held, ask }: { readonly held: HeldLock; readonly ask: () => Promise<Answer<void>> },
  ): Promise<Answer<void>> {
    const release = this.#history.begin({ c: owner, k: lock, op: 'release', v: held.version });
    const answer = await ask();
    if (answer.type === 'answer' && held.state === 'released') {
      release.done({ ok: true });
      this.#granted.get(owner)?.end.drop();
    } else if (answer.type === 'refused' && answer.code === 'LOCK_NOT_HELD') {
      release.done({ ok: false });
    } else {
      release.drop();
    }
    return answer;
  }

  async reenter(
    { lock, owner }: Owned,
    { held, ask }: { readonly held: HeldLock; readonly ask: () => Promise<Answer<HeldLock>> },
  ): Promise<Answer<HeldLock>> {
    const { acquire, end } = this.#asks(lock, `${owner}+${this.#reentries++}`);
    const check = this.#history.begin({ c: owner, k: lock, op: 'check', v: held.version });
    const answer = await ask();
    const current = answer.type === 'answer' || (answer.type === 'refused' && answer.code === 'LOCK_DEPTH_EXCEEDED');
    if (current) check.done({ ok: true, out: true });
    else check.drop();
    if (current || isUnheard(answer)) {
      acquire.drop();
      end.drop();
    }
    return answer;
  }

  async force(
    { who, lock }: { readonly who: string; readonly lock: string },
    ask: () => Promise<Answer<void>>,
  ): Promise<Answer<void>> {
    const force = this.#history.begin({ c: who, k: lock, op: 'force' });
    const answer = await ask();
    if (answer.type === 'answer') force.done({ ok: true });
    else if (answer.type === 'unknown') force.unknown();
    else if (answer.code === 'LOCK_NOT_HELD') force.done({ ok: false });
    else force.drop();
    return answer;
  }

  /** A1, A2. The grant can have ended as soon as it began. */
  #asks(k: string, c: string): { readonly acquire: OpenRequest; readonly end: OpenRequest } {
    const end = this.#history.begin({ c, k, op: 'release' });
    return { acquire: this.#history.begin({ c, k, op: 'acquire' }), end };
  }

  /** Whether a version is the current one. */
  async checkVersion(
    { who, lock, version }: { readonly who: string; readonly lock: string; readonly version: number },
    ask: () => Promise<Answer<boolean>>,
  ): Promise<Answer<boolean>> {
    const check = this.#history.begin({ c: who, k: lock, op: 'check', v: version });
    const answer = await ask();
    if (answer.type === 'answer') check.done({ ok: true, out: answer.value });
    else check.drop();
    return answer;
  }
}

/** A4. */
function unheard(records: readonly HistoryRecord[]): readonly HistoryRecord[] {
  const forces = records.filter(({ op, ok, t1 }) => op === 'force' && (ok || t1 === null));
  return records.flatMap((asked) => {
    if (asked.op !== 'acquire') return [];
    return forces
      .filter((force) => force.k === asked.k && overlap(force, asked))
      .flatMap((_, i) => {
        const unknown = { c: `${asked.c}-${i}`, k: asked.k, ok: false, t0: asked.t0, t1: null };
        return [{ ...unknown, op: 'release' } as const, { ...unknown, op: 'acquire' } as const];
      });
  });
}

function overlap(a: HistoryRecord, b: HistoryRecord): boolean {
  const endOf = ({ t1 }: HistoryRecord): number => t1 ?? Number.POSITIVE_INFINITY;
  return a.t0 < endOf(b) && b.t0 < endOf(a);
}

function isUnheard(answer: Answer<unknown>): boolean {
  return answer.type === 'refused' && UNHEARD.has(answer.code);
}
