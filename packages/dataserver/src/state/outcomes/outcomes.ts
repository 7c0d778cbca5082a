import { isPartial, joinedOutcome } from '../../transactions/answers.ts';
import { decodeOutcomePage, type Outcome, type Remembered } from './outcome-codec.ts';
import { hashOfId, OutcomeEntries, PAGE_ENTRIES_MAX } from './outcome-entries.ts';
import { OutcomeIndex, type OutcomePlace } from './outcome-index.ts';

/**
 * The memory of command results: a retried command is answered from it instead of being applied again.
 *
 * O1. It is replicated state: changed by apply only, carried by checkpoints and snapshots (design §7 ▸).
 * O2. An outcome is kept at least until the command's deadline in range time. Apply refuses a command past its
 *     deadline, and retries carry the same deadline, so a late retry never finds its outcome forgotten *and* is
 *     applied.
 * O3. Outcomes are kept in pages, in order of application. The page of an outcome differs between replicas (a local
 *     checkpoint closes a page), and so does the time for which an outcome stays after its deadline. So apply sees only
 *     outcomes whose deadline has not passed in the time of the range, and only the last one of several under one id.
 * O4. A split copies neither outcomes nor their index, however many there are: the range and its child share the
 *     outcomes remembered before, which nothing changes any more. The shared pages are dropped when the last of them
 *     has expired.
 * O5. A merge does not go through what both ranges share from the time when they were one: it only examines the ids
 *     that either has remembered again since. So the cost of a merge depends on what the two have remembered
 *     separately.
 * O6. When a child begins, it stores only a loan: the place of the pages that the parent has stored. Its next
 *     checkpoint replaces the loan with rows of its own. The parent deletes none of these pages until the child takes
 *     part in checkpoints (`settled`), and every other deletion of them waits for a checkpoint from then on
 *     (range/reshape/splits.ts S8).
 */
interface Page {
  readonly number: number;
  /** A shared page's entries are the same object in all ranges that share it. */
  readonly entries: OutcomeEntries;
  minDeadlineMs: number;
  maxDeadlineMs: number;
  bytes: number;
  /** Some outcomes are one range's share of a transaction over several ranges. */
  partial: boolean;
  stored: boolean;
  /** Shared by several ranges (O4): no outcomes are added. */
  shared: boolean;
  /** The stored page of another range that holds the same outcomes. */
  readonly copyOf: StoredPage | undefined;
}

/** A page as it lies in the engine. */
interface StoredPage {
  readonly rangeId: number;
  readonly page: number;
}

/** A page as it was loaded; `copyOf`: from another range, which lends it. */
export interface LoadedPage {
  readonly number: number;
  readonly bytes: Uint8Array;
  readonly copyOf?: StoredPage | undefined;
}

/** Pages of another range that also belong to this one, under numbers of its own (O6). */
export interface Loan {
  readonly rangeId: number;
  readonly pages: readonly { readonly number: number; readonly of: number }[];
}

/** Outcomes remembered before a split (O4). */
interface Elder {
  readonly index: Pick<OutcomeIndex, 'find' | 'holds' | 'mayHave'>;
  readonly maxDeadlineMs: number;
}

/** The times of two ranges that are merged. */
export interface RangeTimes {
  readonly ownMs: number;
  readonly otherMs: number;
}

const NEW_PAGE = {
  minDeadlineMs: Number.POSITIVE_INFINITY,
  maxDeadlineMs: 0,
  bytes: 0,
  partial: false,
  stored: false,
  shared: false,
  copyOf: undefined,
};

export interface PageWrites {
  put(page: number, bytes: Uint8Array): void;
  /** Copies the stored page to the page number; returns false if the stored page no longer exists. */
  copy(page: number, of: StoredPage): boolean;
  delete(page: number): void;
  /** Stores a loan, or records that there is none any more (O6). */
  borrow(loan: Loan | undefined): void;
}

export class Outcomes {
  /** The index of outcomes remembered since the last split. */
  #index = new OutcomeIndex();
  /** The latest first. */
  #elders: readonly Elder[] = [];
  readonly #pages: Page[] = [];
  #nextPage = 1;
  #bytes = 0;
  /** The id of the last look-up, and its hash: usually its outcome is remembered next. */
  #lookedFor = { requestId: '', hash: hashOfId('') };
  /** Stored pages that were dropped since the last flush. */
  #dropped: number[] = [];
  /** Of a child: whether there is a loan that must be stored, or is stored (O6). */
  #loan: 'none' | 'new' | 'stored' = 'none';
  /** Children that do not take part in checkpoints yet (O6). */
  #unsettled = 0;

  get bytes(): number {
    return this.#bytes;
  }

  get count(): number {
    return this.#pages.reduce((sum, { entries }) => sum + entries.count, 0);
  }

  /** Returns the outcome of an earlier attempt, alike on every replica: nothing once its deadline has passed (O3). */
  find(requestId: string, rangeTimeMs: number): Outcome | undefined {
    return this.#live(requestId, rangeTimeMs)?.outcome;
  }

  /**
   * Like `find`, but also returns an outcome after its deadline if it still exists: for answers, never for apply (O3).
   */
  recall(requestId: string): Outcome | undefined {
    const place = this.#placeOf(requestId);
    return place?.entries.at(place.at).outcome;
  }

  #live(requestId: string, rangeTimeMs: number): Remembered | undefined {
    const place = this.#placeOf(requestId);
    const entry = place?.entries.at(place.at);
    return entry !== undefined && entry.deadlineMs >= rangeTimeMs ? entry : undefined;
  }

  /** The place of the last outcome under an id. */
  #placeOf(requestId: string): OutcomePlace | undefined {
    const hash = hashOfId(requestId);
    this.#lookedFor = { requestId, hash };
    const place = this.#index.find(requestId, hash);
    if (place !== undefined) return place;
    for (const { index } of this.#elders) {
      const earlier = index.find(requestId, hash);
      if (earlier !== undefined) return earlier;
    }
    return undefined;
  }

  /**
   * Outcomes that a retry may still ask for, in the order in which they were remembered: the same on every replica
   * (O3).
   */
  *askable(rangeTimeMs: number): Generator<Remembered> {
    for (const { entries } of this.#pages) {
      for (const entry of entries) if (entry.deadlineMs >= rangeTimeMs) yield entry;
    }
  }

  remember(entry: Remembered, bytes: number): void {
    let page = this.#pages[this.#pages.length - 1];
    if (page === undefined || page.stored || page.shared || page.entries.count >= PAGE_ENTRIES_MAX) page = this.#open();
    this.#add(page, entry);
    page.bytes += bytes;
    this.#bytes += bytes;
  }

  #add(page: Page, entry: Remembered): void {
    const { entries } = page;
    const { requestId, hash } = this.#lookedFor;
    entries.add(entry, entry.requestId === requestId ? hash : hashOfId(entry.requestId));
    widen(page, entry);
    page.partial ||= isPartial(entry.outcome);
    this.#index.set(entry.requestId, { entries, at: entries.count - 1 });
  }

  /**
   * Returns the same memory for a child of this range, which has stored none of it (O4). `settled` must follow (O6).
   */
  fork(rangeId: number): Outcomes {
    const copy = new Outcomes();
    this.#unsettled++;
    for (const page of this.#pages) {
      page.shared = true;
      const copyOf = page.stored ? { rangeId, page: page.number } : undefined;
      copy.#pages.push({ ...page, number: copy.#nextPage++, stored: false, copyOf });
      if (copyOf !== undefined) copy.#loan = 'new';
    }
    if (this.#index.size > 0) {
      const maxDeadlineMs = this.#pages.reduce((max, page) => Math.max(max, page.maxDeadlineMs), 0);
      this.#elders = [{ index: this.#index, maxDeadlineMs }, ...this.#elders];
      this.#index = new OutcomeIndex();
    }
    copy.#elders = this.#elders;
    copy.#bytes = this.#bytes;
    return copy;
  }

  /** The child takes part in checkpoints from now on, or does not exist (O6). */
  settled(): void {
    this.#unsettled--;
  }

  /**
   * Takes over the memory of another range, each with its own time: outcomes of the range whose time lags are kept for
   * as long as they would have been. Outcomes that both remember from the time when they were one are kept once. For a
   * transaction in which both had parts, the results are combined into one outcome.
   */
  unite(other: Outcomes, times: RangeTimes): void {
    const shared = new Set(this.#pages.map(({ entries }) => entries));
    const renewed = this.#rememberedAgain(other, times);
    for (const page of other.#pages) {
      const known = shared.has(page.entries) && Math.max(page.minDeadlineMs, times.otherMs) >= times.ownMs; // O5
      if (known && renewed.size === 0) continue;
      const united: Page = { ...NEW_PAGE, number: this.#nextPage++, entries: new OutcomeEntries() };
      const { entries } = page;
      for (let at = 0; at < entries.count; at++) {
        const deadlineMs = entries.deadlines[at] ?? 0;
        if (known && !renewed.has(entries.at(at).requestId)) continue;
        if (deadlineMs < times.otherMs || !other.#isLast({ entries, at })) continue; // O3
        if (page.partial || this.#mayKnow(entries.hashes[at] ?? 0)) this.#unite(united, entries.at(at), times);
        else this.#copy(united, { entries, at }, laterMs(deadlineMs, times));
      }
      const { count } = united.entries;
      if (count === 0) continue;
      united.bytes = Math.ceil((page.bytes * count) / page.entries.count);
      this.#pages.push(united);
      this.#bytes += united.bytes;
    }
  }

  #unite(page: Page, theirs: Remembered, times: RangeTimes): void {
    const both = this.#united(theirs, times);
    if (both !== undefined) this.#add(page, both);
  }

  /** Adds a complete outcome whose hash no id here has, without decoding it. */
  #copy(page: Page, { entries, at }: OutcomePlace, deadlineMs: number): void {
    page.entries.addFrom(entries, at, deadlineMs);
    widen(page, { deadlineMs });
    this.#index.setNew({ entries: page.entries, at: page.entries.count - 1 });
  }

  /** Returns false if no id with this hash is remembered; true says little. */
  #mayKnow(hash: number): boolean {
    return this.#index.mayHave(hash) || this.#elders.some(({ index }) => index.mayHave(hash));
  }

  /** Whether the outcome at the place is the last under its id. */
  #isLast(place: OutcomePlace): boolean {
    if (this.#index.holds(place)) return true;
    if (hasIdOf(this.#index, place)) return false;
    for (const { index } of this.#elders) {
      if (index.holds(place)) return true;
      if (hasIdOf(index, place)) return false;
    }
    return false;
  }

  /** Ids that this range has remembered again since the shared pages, possibly with incomplete results (O5). */
  #rememberedAgain(other: Outcomes, { ownMs }: RangeTimes): ReadonlySet<string> {
    const theirs = new Set(other.#pages.map(({ entries }) => entries));
    const ids = new Set<string>();
    for (const { entries, minDeadlineMs, partial } of this.#pages) {
      if (theirs.has(entries) || (minDeadlineMs >= ownMs && !partial)) continue;
      for (let at = 0; at < entries.count; at++) {
        const ended = (entries.deadlines[at] ?? 0) < ownMs;
        if (!ended && !partial) continue;
        const { requestId, outcome } = entries.at(at);
        if (ended || isPartial(outcome)) ids.add(requestId);
      }
    }
    return ids;
  }

  /** Returns what must be remembered in addition to what already is. */
  #united(theirs: Remembered, times: RangeTimes): Remembered | undefined {
    const { ownMs, otherMs } = times;
    const mine = this.#live(theirs.requestId, ownMs);
    const deadlineMs = laterMs(theirs.deadlineMs, times);
    if (mine === undefined) return { ...theirs, deadlineMs };
    const joined = joinedOutcome(mine.outcome, theirs.outcome);
    // After the merge the time is the later one (O2): results forgotten by then make the combined outcome incomplete.
    const ends = mine.deadlineMs < otherMs;
    const outcome = joined ?? (ends ? (isPartial(mine.outcome) ? mine : theirs).outcome : undefined);
    return outcome && { ...theirs, outcome, deadlineMs: Math.max(mine.deadlineMs, deadlineMs) };
  }

  /** Drops pages whose deadlines have all passed (O2). */
  expire(rangeTimeMs: number): void {
    while (true) {
      const page = this.#pages[0];
      if (page === undefined || page.maxDeadlineMs >= rangeTimeMs) return;
      this.#pages.shift();
      this.#index.forget(page.entries);
      this.#elders = this.#elders.filter(({ maxDeadlineMs }) => maxDeadlineMs >= rangeTimeMs);
      this.#bytes -= page.bytes;
      if (page.stored) this.#dropped.push(page.number);
    }
  }

  /** Brings storage up to date; called when a checkpoint begins, or a snapshot is taken. */
  flush(writes: PageWrites): void {
    if (this.#loan === 'new') writes.borrow(this.#borrowed());
    else if (this.#loan === 'stored') writes.borrow(undefined);
    for (const page of this.#pages) {
      if (page.stored || (this.#loan === 'new' && page.copyOf !== undefined)) continue; // O6
      const copied = page.copyOf !== undefined && writes.copy(page.number, page.copyOf);
      if (!copied) writes.put(page.number, page.entries.row());
      page.stored = true;
    }
    this.#loan = this.#loan === 'new' ? 'stored' : 'none';
    if (this.#unsettled > 0) return;
    for (const number of this.#dropped) writes.delete(number);
    this.#dropped = [];
  }

  #borrowed(): Loan {
    const lent = this.#pages.flatMap(({ number, copyOf }) => (copyOf === undefined ? [] : [{ number, copyOf }]));
    const [rangeId = 0] = lent.map(({ copyOf }) => copyOf.rangeId); // all of them are of its parent
    return { rangeId, pages: lent.map(({ number, copyOf }) => ({ number, of: copyOf.page })) };
  }

  /** Loads the pages that `flush` wrote or named, oldest first. */
  load(pages: readonly LoadedPage[]): void {
    for (const { number, bytes, copyOf } of pages) {
      const stored = copyOf === undefined;
      const kept = { stored, shared: !stored, copyOf };
      const page: Page = { ...NEW_PAGE, number, entries: new OutcomeEntries(), bytes: bytes.length, ...kept };
      if (!stored) this.#loan = 'stored';
      for (const entry of decodeOutcomePage(bytes)) this.#add(page, entry);
      this.#pages.push(page);
      this.#bytes += bytes.length;
      this.#nextPage = number + 1;
    }
  }

  #open(): Page {
    const page: Page = { ...NEW_PAGE, number: this.#nextPage++, entries: new OutcomeEntries() };
    this.#pages.push(page);
    return page;
  }
}

/** Whether the index has the id of the outcome at the place, which is decoded only if some id has its hash. */
function hasIdOf(index: Elder['index'], { entries, at }: OutcomePlace): boolean {
  const hash = entries.hashes[at] ?? 0;
  return index.mayHave(hash) && index.find(entries.at(at).requestId, hash) !== undefined;
}

/** The deadline of an outcome of the other range, which keeps it for as long as that range would have. */
function laterMs(deadlineMs: number, { ownMs, otherMs }: RangeTimes): number {
  return deadlineMs + Math.max(0, ownMs - otherMs);
}

function widen(page: Page, { deadlineMs }: Pick<Remembered, 'deadlineMs'>): void {
  page.minDeadlineMs = Math.min(page.minDeadlineMs, deadlineMs);
  page.maxDeadlineMs = Math.max(page.maxDeadlineMs, deadlineMs);
}
