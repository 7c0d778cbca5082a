/**
 * Watches of one run on both servers.
 *
 * WA1. When the servers are to be compared, each watch has a last event that it must tell: a write of a key that it
 *      covers. All that it has told by then is compared.
 * WA2. Events of one revision are compared by their keys: etcd has them in the order of operations, Remora in that of
 *      ranges.
 * WA3. What a watch tells after its end was asked for depends on when the server hears of it: then one of the two lists
 *      is the beginning of the other.
 */
import type { Answer, Exact } from './judge/answers.ts';
import { type Difference, differences } from './judge/compare.ts';
import type { RevisionMap } from './judge/revision-map.ts';
import type { CancelStep, ProgressStep, WatchStep } from './requests/requests.ts';
import type { Watched, WatchLog } from './servers/watch-log.ts';

export interface Told {
  readonly etcd: Answer;
  readonly remora: Answer;
  readonly differences: readonly Difference[];
}

/** A write that watches have to tell of. */
export interface Mark {
  readonly key: string;
  readonly type: 'put' | 'delete';
  readonly revisions: { readonly etcd: number; readonly remora: number };
}

export interface WatchLogs {
  readonly etcd: WatchLog;
  readonly remora: WatchLog;
}

export class Watches {
  readonly #logs: WatchLogs;
  readonly #revisions: RevisionMap;
  /** How many events of each watch have been compared. */
  readonly #compared = new Map<number, number>();

  constructor(logs: WatchLogs, revisions: RevisionMap) {
    this.#logs = logs;
    this.#revisions = revisions;
  }

  /** `isCompacted`: it starts at a revision that is gone, so that it has to end. */
  async create(step: WatchStep, isCompacted: boolean): Promise<Told> {
    const { etcd, remora } = this.#logs;
    const told = this.#compare(await both(etcd.create(step), remora.create(step)));
    if (!isCompacted || told.differences.length > 0 || this.#live(step.watch) === undefined) return told;
    await both(etcd.ended(step.watch), remora.ended(step.watch));
    const ends = { etcd: endOf(etcd, step.watch), remora: endOf(remora, step.watch) };
    return this.#compare(ends);
  }

  async cancel({ watch }: CancelStep): Promise<Told | undefined> {
    if (this.#live(watch) === undefined) return undefined;
    const { etcd, remora } = this.#logs;
    const told = this.#compare(await both(etcd.cancel(watch), remora.cancel(watch)));
    if (told.differences.length > 0) return told;
    return this.#compareEvents(watch); // WA3
  }

  /**
   * Undefined: Remora does not answer. It says nothing of a stream without watches, or with one that begins in the
   * future (decision 70), as later versions of etcd.
   */
  async progress({ stream }: ProgressStep): Promise<Told | undefined> {
    const live = this.#steps().filter((step) => step.stream === stream);
    if (live.length === 0 || live.some(isOfFuture)) return undefined;
    const { etcd, remora } = this.#logs;
    return this.#compare(await both(etcd.progress(stream), remora.progress(stream)));
  }

  /** Keys to write so that each live watch has something to tell, and whether they are to be deleted as well. */
  wanted(): ReadonlyMap<string, boolean> {
    const keys = new Map<string, boolean>();
    for (const step of this.#tellers()) {
      const key = step.key === '' ? '\0' : step.key;
      keys.set(key, (keys.get(key) ?? false) || step.noPut === true);
    }
    return keys;
  }

  /** WA1. What first differs. */
  async settle(marks: readonly Mark[]): Promise<Told | undefined> {
    const { etcd, remora } = this.#logs;
    for (const step of this.#tellers()) {
      const last = marks.findLast((mark) => tells(step, mark));
      if (last === undefined) continue;
      const [left, right] = await Promise.all([
        etcd.reached(step.watch, last.revisions.etcd),
        remora.reached(step.watch, last.revisions.remora),
      ]);
      const told = this.#compareEvents(step.watch);
      if (told.differences.length > 0) return told;
      const late = { etcd: left, remora: right };
      if (!(left && right)) return { ...late, differences: [{ path: `watch ${step.watch} caught up`, ...late }] };
    }
    const faults = { etcd: etcd.faults[0] ?? null, remora: remora.faults[0] ?? null };
    if (faults.etcd === null && faults.remora === null) return undefined;
    return { ...faults, differences: [{ path: 'rules of a stream', ...faults }] };
  }

  close(): void {
    this.#logs.etcd.close();
    this.#logs.remora.close();
  }

  /** Live watches that will tell of a write. */
  #tellers(): readonly WatchStep[] {
    return this.#steps().filter((step) => !(isOfFuture(step) || (step.noPut && step.noDelete)));
  }

  /** Of live watches. */
  #steps(): readonly WatchStep[] {
    return [...this.#logs.etcd.watches.keys()].flatMap((watch) => this.#live(watch)?.step ?? []);
  }

  #live(watch: number): Watched | undefined {
    const left = this.#logs.etcd.watches.get(watch);
    const right = this.#logs.remora.watches.get(watch);
    return left?.end === undefined && right?.end === undefined ? left : undefined;
  }

  #compareEvents(watch: number): Told {
    const [left, right] = [this.#logs.etcd, this.#logs.remora].map((log) => log.watches.get(watch));
    const from = this.#compared.get(watch) ?? 0;
    let to = Math.max(left?.events.length ?? 0, right?.events.length ?? 0);
    if (left?.canceled) to = Math.min(left.events.length, right?.events.length ?? 0); // WA3
    this.#compared.set(watch, to);
    const [etcd, remora] = [left, right].map((watched) => watched?.events.slice(from, to) ?? []);
    const [inOrder, inOtherOrder] = [etcd, remora].map((events) => byKeyInRevision(events ?? []));
    const { differences: found } = this.#compare({ etcd: inOrder ?? [], remora: inOtherOrder ?? [] });
    const path = `watch ${watch}.events`;
    return {
      ...{ etcd: etcd ?? [], remora: remora ?? [] },
      differences: found.map((each) => ({ ...each, path: each.path === '' ? path : `${path}.${each.path}` })),
    };
  }

  #compare({ etcd, remora }: { readonly etcd: Answer; readonly remora: Answer }): Told {
    return { etcd, remora, differences: differences(etcd, remora, this.#revisions) };
  }
}

async function both<T>(etcd: Promise<T>, remora: Promise<T>): Promise<{ readonly etcd: T; readonly remora: T }> {
  const [left, right] = await Promise.all([etcd, remora]);
  return { etcd: left, remora: right };
}

/** WA2. */
function byKeyInRevision(events: readonly Answer[]): readonly Answer[] {
  const all = events as readonly { readonly kv: { readonly key: string; readonly mod: Exact } }[];
  return all.toSorted(
    (a, b) => a.kv.mod.revision - b.kv.mod.revision || (a.kv.key < b.kv.key ? -1 : 1),
  ) as unknown as Answer[];
}

function endOf(log: WatchLog, watch: number): Answer {
  return log.watches.get(watch)?.end ?? 'goes on';
}

function isOfFuture({ start }: WatchStep): boolean {
  return start !== undefined && ('ahead' in start || ('raw' in start && start.raw > 0n));
}

function tells({ key, end = '', noPut, noDelete }: WatchStep, mark: Mark): boolean {
  if (mark.type === 'put' ? noPut : noDelete) return false;
  const first = key === '' ? '\0' : key;
  if (end === '') return mark.key === first;
  return mark.key >= first && (end === '\0' || mark.key < end);
}
