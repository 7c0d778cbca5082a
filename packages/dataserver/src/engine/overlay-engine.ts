/**
 * The storage engine: an overlay in memory over a persistent store.
 *
 * O1. State = active generation over frozen generation (the one being checkpointed, if any) over the store.
 * O2. Every row of a resident key space is in `#resident`, so reads there never reach the store. The generations'
 *     `resident` changes hold what must still be written; they need no order of names.
 * O3. A delete leaves no tombstone only if nothing lies below it. For a resident key, the first change in a generation
 *     records whether the key existed then; if it did, the layers below hold it. Elsewhere the delete stays as a
 *     tombstone until it is checkpointed.
 * O4. A generation is written in one atomic, synced batch, and not before the log is durable up to it
 *     (design §6). It is dropped only after the batch is durable; until then it hides equal rows in the store.
 * O5. Checkpoints, clearings and the beginnings of rebuilds run one at a time, and a waiting clearing or rebuild goes
 *     before a waiting checkpoint. So while a span is being cleared, the store holds nothing there that is newer than
 *     the call.
 * O6. From the call of `clearSpan` on, what the frozen generation and the store hold in the span is invisible
 *     (`#clearing`); changes made after the call lie in the active generation and survive.
 * O7. A failed write or read of the store is final: `onFailure` is called once and nothing is retried.
 * O8. Spans that are being rebuilt (`#rebuilding`, see rebuild.ts) read as empty and take no change, so no generation
 *     holds anything of them: checkpoints go on meanwhile and cannot write there.
 */
import {
  assert,
  type Bytes,
  type Engine,
  type EngineView,
  type Link,
  loopSection,
  type Rebuild,
  type ResidentValue,
  type Row,
  type ScanOptions,
  type Span,
} from '@remora/base';
import type { EngineDeps } from './engine-deps.ts';
import { Generation, writeGeneration } from './generation.ts';
import { anyRangeHolds, type Name, type NameRange, nameOf, rangeCovers, rangeOf, rangesOverlap } from './latin1.ts';
import { type PinnedLayer, type PinnedSpan, readMerged, readPicture, storeRange } from './merge.ts';
import { clearStore, type RebuildHost, rebuildSpans } from './rebuild.ts';
import { ResidentTable } from './resident-table.ts';
import type { PersistentStore } from './store.ts';
import { newTask, type Task } from './task.ts';
import { View } from './view.ts';

const LOAD_ROWS_PER_PAGE_MAX = 1000;

class EngineClosedError extends Error {
  override readonly name = 'EngineClosedError';
}

export class OverlayEngine implements Engine {
  readonly #store: PersistentStore;
  readonly #deps: EngineDeps;
  readonly #residentRanges: readonly NameRange[];
  readonly #hooks = new Set<() => void>();
  #active = new Generation();
  readonly #resident = new ResidentTable(this.#active.resident);
  #frozen: Generation | undefined;
  /** Replaced, never modified, so that views may keep it. */
  #clearing: readonly NameRange[] = [];
  /** Replaced, never modified, so that views may keep it (O8). */
  #rebuilding: readonly NameRange[] = [];
  readonly #rebuilds = new Set<Promise<void>>();
  #running: Task | undefined;
  /** Clearings and beginnings of rebuilds (O5). */
  readonly #waitingFirst: Task[] = [];
  #waitingCheckpoint: Task | undefined;
  #failure: Error | undefined;
  #closing: Promise<void> | undefined;
  /** Changes staged for a checkpoint that waited when the engine was closed belong to that checkpoint. */
  #staging = false;

  private constructor(store: PersistentStore, deps: EngineDeps) {
    this.#store = store;
    this.#deps = deps;
    this.#residentRanges = deps.options.resident.map(rangeOf);
  }

  /** Loads the resident rows and takes ownership of the store: `close` closes it. */
  static async open(store: PersistentStore, deps: EngineDeps): Promise<OverlayEngine> {
    const engine = new OverlayEngine(store, deps);
    for (const span of deps.options.resident) {
      const cursor = store.cursor(storeRange(span));
      for (;;) {
        const rows = await cursor.next(LOAD_ROWS_PER_PAGE_MAX);
        if (rows.length === 0) break;
        engine.#load(rows);
      }
      await cursor.close();
    }
    return engine;
  }

  /** Like `open`, if the caller already has the rows of the store. */
  static openLoaded(store: PersistentStore, deps: EngineDeps, rows: Iterable<Row>): OverlayEngine {
    const engine = new OverlayEngine(store, deps);
    engine.#load(rows);
    return engine;
  }

  #load(rows: Iterable<Row>): void {
    for (const row of rows) {
      const name = nameOf(row.key);
      if (anyRangeHolds(this.#residentRanges, name)) this.#resident.load(name, row.value);
    }
  }

  // ------------------------------------------------------------------------------------------------ rows

  get(key: Bytes): Bytes | undefined {
    const name = nameOf(key);
    if (this.#rebuilding.length > 0 && anyRangeHolds(this.#rebuilding, name)) return undefined; // O8
    if (anyRangeHolds(this.#residentRanges, name)) return this.#resident.bytes(name); // O2
    const changed = this.#active.changes.get(name);
    if (changed !== undefined) return changed.value;
    if (this.#clearing.length > 0 && anyRangeHolds(this.#clearing, name)) return undefined; // O6
    const frozen = this.#frozen?.changes.get(name);
    return frozen === undefined ? this.#readStore(key) : frozen.value;
  }

  put(key: Bytes, value: Bytes): void {
    const name = this.#nameToChange(key);
    if (anyRangeHolds(this.#residentRanges, name)) this.#resident.put(name, value);
    else this.#active.changes.set(name, value);
  }

  delete(key: Bytes): void {
    const name = this.#nameToChange(key);
    if (anyRangeHolds(this.#residentRanges, name)) this.#resident.delete(name);
    else this.#active.changes.set(name, undefined);
  }

  getResident(name: Name): ResidentValue | undefined {
    if (this.#rebuilding.length > 0 && anyRangeHolds(this.#rebuilding, name)) return undefined; // O8
    return this.#resident.get(name);
  }

  putResident(name: Name, value: ResidentValue): void {
    this.#checkToChange(name);
    assert(anyRangeHolds(this.#residentRanges, name), 'O2: the row lies in a resident key space');
    this.#resident.put(name, value);
  }

  deleteResident(name: Name): void {
    this.#checkToChange(name);
    this.#resident.delete(name);
  }

  link(link: Link, isNew: boolean): void {
    this.#checkToChange(link.from);
    assert(anyRangeHolds(this.#residentRanges, link.from), 'O2: the row lies in a resident key space');
    this.#resident.link(link, isNew);
  }

  unlink(link: Link): void {
    this.#checkToChange(link.from);
    this.#resident.unlink(link);
  }

  isLinked(link: Link): boolean {
    if (this.#rebuilding.length > 0 && anyRangeHolds(this.#rebuilding, link.from)) return false; // O8
    return this.#resident.isLinked(link);
  }

  #nameToChange(key: Bytes): Name {
    const name = nameOf(key);
    this.#checkToChange(name);
    return name;
  }

  #checkToChange(name: Name): void {
    assert(name !== '', 'P3: an engine key is not empty');
    assert(this.#closing === undefined || this.#staging, 'the engine is not changed after close');
    if (this.#rebuilding.length > 0) assert(!anyRangeHolds(this.#rebuilding, name), 'O8: a span is being rebuilt');
  }

  #readStore(key: Bytes): Bytes | undefined {
    try {
      return this.#store.get(key);
    } catch (error) {
      throw this.#fail(error);
    }
  }

  // ----------------------------------------------------------------------------------------------- scans

  scanResident(options: ScanOptions): readonly Row[] {
    assert(this.#isResident(rangeOf(options)), 'a resident scan lies in one resident key space');
    return readPicture(this.#resident.live(), options, this.#rebuilding);
  }

  async scan(options: ScanOptions): Promise<readonly Row[]> {
    this.#checkUsable();
    const range = rangeOf(options);
    if (this.#isResident(range)) return readPicture(this.#resident.live(), options, this.#rebuilding);
    // The pins and the cursor are taken here, before the first await (M3).
    const pinned = this.#pin(range, () => this.#store.cursor(storeRange(options)));
    let rows: Row[] | undefined;
    try {
      for await (const batch of readMerged(pinned, options, this.#deps.clock)) {
        if (rows === undefined) rows = batch;
        else for (const row of batch) rows.push(row);
      }
    } catch (error) {
      throw this.#fail(error);
    }
    return rows ?? [];
  }

  view(): EngineView {
    this.#checkUsable();
    const everything = this.#pin({ start: '', end: '' }, () => undefined);
    return new View({
      layers: everything.layers,
      hiddenOnDisk: everything.hiddenOnDisk,
      residentRanges: this.#residentRanges,
      snapshot: this.#store.snapshot(),
      clock: this.#deps.clock,
      onError: (error) => this.#fail(error),
    });
  }

  #isResident(range: NameRange): boolean {
    return this.#residentRanges.some((resident) => rangeCovers(resident, range));
  }

  #pin(range: NameRange, openDisk: () => PinnedSpan['disk']): PinnedSpan {
    const clearing = this.#clearing;
    const layers: PinnedLayer[] = [];
    if (this.#active.changes.keys > 0) layers.push({ picture: this.#active.changes.picture(), hidden: [] });
    // A frozen generation never changes again: its live tree is its picture.
    if (this.#frozen !== undefined) layers.push({ picture: this.#frozen.changes.live(), hidden: clearing });
    if (this.#residentRanges.some((resident) => rangesOverlap(resident, range))) {
      layers.push({ picture: this.#resident.picture(), hidden: this.#rebuilding });
    }
    return { layers, disk: openDisk(), hiddenOnDisk: [...clearing, ...this.#rebuilding, ...this.#residentRanges] };
  }

  // --------------------------------------------------------------------------------- clearing and rebuilding

  /**
   * Removes the rows that the span holds now: they are invisible at once, and deleted from disk when the promise
   * resolves. Rows put into the span after the call survive. The removal is not atomic on disk: after a crash before
   * the promise resolves, any part of the rows of the last checkpoint may still exist. So the caller first checkpoints
   * a marker, and clears again after a crash.
   */
  clearSpan(span: Span): Promise<void> {
    const range = rangeOf(span);
    const refused = this.#refusal();
    if (refused !== undefined) return Promise.reject(refused);
    this.#checkNotRebuilt([range]);
    this.#forgetChanges(range);
    this.#resident.forgetRange(range);
    this.#clearing = [...this.#clearing, range];
    return this.#first(async () => {
      await clearStore(this.#store, span);
      this.#clearing = this.#clearing.filter((other) => other !== range);
    });
  }

  async rebuild(plan: Rebuild): Promise<void> {
    this.#checkUsable();
    const work = rebuildSpans(this.#rebuildHost(plan), plan).catch((error: unknown) => {
      throw error instanceof EngineClosedError ? error : this.#fail(plan.failure(error));
    });
    this.#rebuilds.add(work);
    await work.finally(() => this.#rebuilds.delete(work));
  }

  #rebuildHost(plan: Rebuild): RebuildHost {
    return {
      store: this.#store,
      clock: this.#deps.clock,
      resident: this.#resident,
      isResident: (name) => anyRangeHolds(this.#residentRanges, name),
      put: ({ key, value }) => this.put(key, value),
      betweenCheckpoints: (work) =>
        this.#first(() =>
          work().catch((error: unknown) => {
            throw plan.failure(error);
          }),
        ),
      hide: (ranges) => {
        this.#checkNotRebuilt(ranges);
        for (const range of ranges) this.#forgetChanges(range);
        this.#rebuilding = [...this.#rebuilding, ...ranges];
      },
      show: (ranges) => {
        this.#rebuilding = this.#rebuilding.filter((range) => !ranges.includes(range));
      },
      checkUsable: () => this.#checkUsable(),
    };
  }

  /** Forgets the changes since the last checkpoint. */
  #forgetChanges(range: NameRange): void {
    this.#active.changes.removeRange(range);
    this.#resident.forgetChanges(range);
  }

  #checkNotRebuilt(ranges: readonly NameRange[]): void {
    const overlap = ranges.some((range) => this.#rebuilding.some((other) => rangesOverlap(range, other)));
    assert(!overlap, 'O8: a span is being rebuilt');
  }

  // ------------------------------------------------------------------------------------------- checkpoints

  onCheckpoint(hook: () => void): () => void {
    this.#hooks.add(hook);
    return () => this.#hooks.delete(hook);
  }

  checkpoint(): Promise<void> {
    const refused = this.#refusal();
    if (refused !== undefined) return Promise.reject(refused);
    this.#waitingCheckpoint ??= newTask(() => this.#runCheckpoint());
    const { promise } = this.#waitingCheckpoint;
    this.#runNext();
    return promise;
  }

  async #runCheckpoint(): Promise<void> {
    this.#staging = true;
    loopSection('checkpoint', () => {
      for (const hook of this.#hooks) hook();
    });
    this.#staging = false;
    if (this.#active.empty) return;
    const generation = this.#active;
    this.#frozen = generation;
    this.#active = new Generation();
    this.#resident.begin(this.#active.resident);
    await this.#deps.logDurable?.();
    await writeGeneration(this.#store, generation, this.#deps.clock);
    this.#frozen = undefined; // O4
  }

  pending(): { readonly bytes: number; readonly keys: number } {
    const frozen = this.#frozen;
    return {
      bytes: this.#active.bytes + (frozen?.bytes ?? 0),
      keys: this.#active.keys + (frozen?.keys ?? 0),
    };
  }

  // ------------------------------------------------------------------------------------------- life cycle

  /** Ends what is running or waiting, then closes the store. Changes without a checkpoint remain in the log. */
  close(): Promise<void> {
    this.#closing ??= this.#drainAndClose();
    return this.#closing;
  }

  async #drainAndClose(): Promise<void> {
    while (this.#running !== undefined) await this.#running.promise.catch(() => {});
    await Promise.allSettled(this.#rebuilds);
    await this.#store.close();
  }

  /** Runs `work` before any checkpoint that waits (O5). */
  #first(work: () => Promise<void>): Promise<void> {
    const task = newTask(work);
    this.#waitingFirst.push(task);
    this.#runNext();
    return task.promise;
  }

  #runNext(): void {
    if (this.#running !== undefined) return;
    let task = this.#waitingFirst.shift(); // O5
    if (task === undefined) {
      task = this.#waitingCheckpoint;
      this.#waitingCheckpoint = undefined;
    }
    if (task === undefined) return;
    this.#running = task;
    void this.#runTask(task);
  }

  async #runTask(task: Task): Promise<void> {
    try {
      if (this.#failure !== undefined) throw this.#failure;
      await task.run();
      this.#running = undefined;
      task.resolve();
    } catch (error) {
      this.#running = undefined;
      task.reject(this.#fail(error));
    }
    this.#runNext();
  }

  #refusal(): Error | undefined {
    return this.#failure ?? (this.#closing === undefined ? undefined : new EngineClosedError('the engine is closed'));
  }

  #checkUsable(): void {
    const refused = this.#refusal();
    if (refused !== undefined) throw refused;
  }

  #fail(cause: unknown): Error {
    if (this.#failure !== undefined) return this.#failure;
    const error = cause instanceof Error ? cause : new Error(String(cause));
    if (this.#closing !== undefined && this.#running === undefined) return error; // a read cut short by close
    this.#failure = error;
    this.#deps.onFailure(error);
    return error;
  }
}
