/**
 * A disk in memory that loses data in a crash like a real one.
 *
 * D1. Data covered by a `sync` that was called back survives every crash. Unsynced writes survive in part, at random:
 *     either a prefix of them with the last one torn, or any selection of their sectors.
 * D2. Creations, renames and removals survive once `syncDir` has resolved. A prefix of the later ones survives, because
 *     a journaling file system keeps their order.
 * D3. After a crash, callers from before it get no callback, because their process is dead. Open files detect this
 *     themselves; a process that may crash between other calls must use a disk from `mount`.
 * D4. Equal seeds and equal calls give equal results.
 * D5. Data covered by a failed sync counts as clean afterwards, as on a real machine: it is readable until the machine
 *     loses power, also by the next process, but no later sync writes it to the medium. To keep it, write it again.
 */
import { assert } from '../assert.ts';
import type { Clock } from '../clock.ts';
import { type Disk, type DiskFile, writeThenSync } from '../disk.ts';
import type { Random } from '../random.ts';

export interface SimDiskOptions {
  readonly random: Random;
  /** Makes writes and syncs take time: up to `latencyMs` each. Without it they are called back in a microtask. */
  readonly clock?: Clock;
  readonly latencyMs?: number;
  /** The limit for the sum of all file sizes: beyond it, writes fail with `ENOSPC`. */
  readonly capacityBytes?: number;
}

type Done = (error: Error | null) => void;

const SECTOR_BYTES = 512;

export class SimDisk implements Disk {
  readonly #random: Random;
  readonly #clock: Clock | undefined;
  #latencyMs: number;
  #capacityBytes: number;
  /** Grows with each crash; handles of an older life are dead (D3). */
  #life = 0;
  #names = new Map<string, Inode>();
  readonly #durableNames = new Map<string, Inode>();
  #nameChanges: { readonly dir: string; apply(names: Map<string, Inode>): void }[] = [];
  #failures: { readonly operation: 'write' | 'sync'; readonly error: Error }[] = [];

  constructor(options: SimDiskOptions) {
    this.#random = options.random;
    this.#clock = options.clock;
    this.#latencyMs = options.latencyMs ?? 0;
    this.#capacityBytes = options.capacityBytes ?? Number.POSITIVE_INFINITY;
  }

  // ------------------------------------------------------------------------------------------ the port

  async list(dir: string): Promise<readonly string[]> {
    const prefix = dir === '' ? '' : `${clean(dir)}/`;
    return [...this.#names.keys()]
      .filter((path) => path.startsWith(prefix) && !path.slice(prefix.length).includes('/'))
      .map((path) => path.slice(prefix.length))
      .sort();
  }

  async makeDir(): Promise<void> {
    // Directories are implied by the paths of files.
  }

  async open(path: string, options: { readonly create: boolean }): Promise<DiskFile> {
    const name = clean(path);
    let inode = this.#names.get(name);
    if (inode === undefined) {
      if (!options.create) throw systemError('ENOENT', `no such file: ${path}`);
      const created = new Inode();
      inode = created;
      this.#changeNames(name, (names) => names.set(name, created));
    }
    return this.#handle(inode);
  }

  async rename({ from, to }: { readonly from: string; readonly to: string }): Promise<void> {
    const [source, target] = [clean(from), clean(to)];
    const inode = this.#names.get(source);
    if (inode === undefined) throw systemError('ENOENT', `no such file: ${from}`);
    this.#changeNames(source, (names) => {
      names.delete(source);
      names.set(target, inode);
    });
  }

  async remove(path: string): Promise<void> {
    const name = clean(path);
    if (!this.#names.has(name)) throw systemError('ENOENT', `no such file: ${path}`);
    this.#changeNames(name, (names) => names.delete(name));
  }

  async syncDir(dir: string): Promise<void> {
    // One journal for the whole disk: syncing one directory makes all earlier changes durable, in order.
    const last = this.#nameChanges.findLastIndex((change) => change.dir === (dir === '' ? '' : clean(dir)));
    for (const change of this.#nameChanges.splice(0, last + 1)) change.apply(this.#durableNames);
  }

  // ------------------------------------------------------------------------------------------ the control side

  /** The disk as one process sees it: after the next `crash` or `kill` its calls do nothing and never resolve (D3). */
  mount(): Disk {
    const life = this.#life;
    const alive = <T>(work: () => Promise<T>): Promise<T> => (life === this.#life ? work() : new Promise<T>(() => {}));
    return {
      list: (dir) => alive(() => this.list(dir)),
      makeDir: () => alive(() => this.makeDir()),
      open: (path, options) => alive(() => this.open(path, options)),
      rename: (change) => alive(() => this.rename(change)),
      remove: (path) => alive(() => this.remove(path)),
      syncDir: (dir) => alive(() => this.syncDir(dir)),
    };
  }

  /** The machine loses power now. What survives is what `open` and `list` show afterwards. */
  crash(): void {
    this.#life++;
    this.#failures = [];
    const kept = this.#random.int(this.#nameChanges.length + 1);
    for (const change of this.#nameChanges.slice(0, kept)) change.apply(this.#durableNames);
    this.#nameChanges = [];
    this.#names = new Map(this.#durableNames);
    for (const inode of new Set(this.#names.values())) inode.crash(this.#random);
  }

  /** The process dies, the machine does not: nothing is lost, and nothing is called back any more. */
  kill(): void {
    this.#life++;
    this.#failures = [];
  }

  /** The next write or sync fails. A failed write may have written a part of its bytes. */
  failNext(operation: 'write' | 'sync', code = 'EIO'): void {
    this.#failures.push({ operation, error: systemError(code, `${operation} failed`) });
  }

  /** Cancels failures from `failNext` that have not occurred yet. */
  repair(): void {
    this.#failures = [];
  }

  setLatency(latencyMs: number): void {
    this.#latencyMs = latencyMs;
  }

  setCapacity(capacityBytes: number): void {
    this.#capacityBytes = capacityBytes;
  }

  /** Flips the bits of `mask` in one byte, durably: the medium decayed. */
  corrupt(path: string, position: number, mask = 1): void {
    this.#inode(path).flip(position, mask);
  }

  /** Whether a reader finds a file of that name. */
  has(path: string): boolean {
    return this.#names.has(clean(path));
  }

  /** A copy of what a reader sees. */
  contents(path: string): Buffer {
    return Buffer.from(this.#inode(path).bytes());
  }

  /**
   * What would be left of a file if the machine lost power now and no unsynced write survived. Shared with the disk:
   * read it at once, and do not change it.
   */
  durableContents(path: string): Buffer | undefined {
    return this.#durableNames.get(clean(path))?.durableBytes();
  }

  /** The names that would survive a loss of power now, sorted. */
  durableNames(): readonly string[] {
    return [...this.#durableNames.keys()].sort();
  }

  usedBytes(): number {
    let sum = 0;
    for (const inode of this.#names.values()) sum += inode.size;
    return sum;
  }

  // ------------------------------------------------------------------------------------------ helpers

  #inode(path: string): Inode {
    const inode = this.#names.get(clean(path));
    assert(inode !== undefined, `no such file: ${path}`);
    return inode;
  }

  #changeNames(path: string, apply: (names: Map<string, Inode>) => void): void {
    apply(this.#names);
    this.#nameChanges.push({ dir: path.slice(0, Math.max(0, path.lastIndexOf('/'))), apply });
  }

  #takeFailure(operation: 'write' | 'sync'): Error | undefined {
    const at = this.#failures.findIndex((failure) => failure.operation === operation);
    return at < 0 ? undefined : this.#failures.splice(at, 1)[0]?.error;
  }

  #growBy(inode: Inode, size: number): Error | undefined {
    const growth = Math.max(0, size - inode.size);
    if (growth === 0 || this.usedBytes() + growth <= this.#capacityBytes) return undefined;
    return systemError('ENOSPC', 'no space left on device');
  }

  /** Runs `finish` after the operation's latency, unless the process has died by then. */
  #complete(life: number, finish: () => void): void {
    const run = (): void => {
      if (life === this.#life) finish();
    };
    if (this.#clock === undefined) queueMicrotask(run);
    else this.#clock.setTimer(this.#random.int(Math.floor(this.#latencyMs * 1000) + 1) / 1000, run);
  }

  #handle(inode: Inode): DiskFile {
    const life = this.#life;
    const alive = <T>(work: () => T): Promise<T> => {
      if (life !== this.#life) return new Promise<T>(() => {}); // D3
      return Promise.resolve().then(work);
    };
    const file: DiskFile = {
      size: () => alive(() => inode.size),
      read: (position, length) => alive(() => Buffer.from(inode.bytes().subarray(position, position + length))),
      write: (position, chunks, done) => this.#write({ inode, life, position, chunks, done }),
      sync: (done) => {
        if (life !== this.#life) return;
        const error = this.#takeFailure('sync');
        const covered = inode.writesSoFar;
        this.#complete(life, () => {
          if (error === undefined) inode.makeDurable(covered);
          else inode.forgetWrites(covered); // D5
          done(error ?? null);
        });
      },
      preallocate: (size) =>
        alive(() => {
          const error = this.#growBy(inode, size);
          if (error !== undefined) throw error;
          if (size > inode.size) inode.resize(size);
        }),
      writeSynced: (position, chunks, done) => writeThenSync(file, position, chunks, done),
      truncate: (size) => alive(() => inode.resize(size)),
      close: () => alive(() => undefined),
    };
    return file;
  }

  #write(call: { inode: Inode; life: number; position: number; chunks: readonly Uint8Array[]; done: Done }): void {
    const { inode, life, position, done } = call;
    if (life !== this.#life) return;
    const data = Buffer.concat(call.chunks);
    const error = this.#takeFailure('write') ?? this.#growBy(inode, position + data.length);
    // A crash may come before the callback: from now on the bytes may reach the medium or not.
    inode.write(position, error === undefined ? data : data.subarray(0, this.#random.int(data.length + 1)));
    this.#complete(life, () => done(error ?? null));
  }
}

type Change =
  | { readonly type: 'write'; readonly position: number; readonly data: Buffer }
  | { readonly type: 'resize'; readonly size: number };

/** A file's bytes as readers see them, as the medium holds them, and the changes that lead from one to the other. */
class Inode {
  #visible = new GrowingBytes();
  readonly #durable = new GrowingBytes();
  #unsynced: Change[] = [];
  #durableChanges = 0;

  get size(): number {
    return this.#visible.size;
  }

  /** The number of changes so far; names a moment for `makeDurable`. */
  get writesSoFar(): number {
    return this.#durableChanges + this.#unsynced.length;
  }

  bytes(): Buffer {
    return this.#visible.bytes();
  }

  durableBytes(): Buffer {
    return this.#durable.bytes();
  }

  write(position: number, data: Buffer): void {
    this.#change({ type: 'write', position, data });
  }

  resize(size: number): void {
    this.#change({ type: 'resize', size });
  }

  makeDurable(upTo: number): void {
    const count = Math.max(0, upTo - this.#durableChanges);
    for (const change of this.#unsynced.splice(0, count)) this.#durable.apply(change);
    this.#durableChanges += count;
  }

  /** The writes stay visible but never become durable (D5); the file system's journal keeps sizes. */
  forgetWrites(upTo: number): void {
    const count = Math.max(0, upTo - this.#durableChanges);
    const kept = this.#unsynced.splice(0, count).filter((change) => change.type === 'resize');
    this.#unsynced.unshift(...kept);
    this.#durableChanges += count - kept.length;
  }

  crash(random: Random): void {
    const changes = this.#unsynced;
    this.#unsynced = [];
    this.#durableChanges += changes.length;
    if (random.int(2) === 0) {
      const whole = random.int(changes.length + 1);
      for (const change of changes.slice(0, whole)) this.#durable.apply(change);
      const torn = changes[whole];
      if (torn?.type === 'write' && random.int(3) > 0) {
        this.#durable.apply({ ...torn, data: torn.data.subarray(0, random.int(torn.data.length + 1)) });
      }
    } else {
      for (const change of changes) this.#keepSomeSectors(change, random);
    }
    this.#visible = this.#durable.copy();
  }

  flip(position: number, mask: number): void {
    for (const side of [this.#visible, this.#durable]) {
      const bytes = side.bytes();
      if (position < bytes.length) bytes[position] = (bytes[position] ?? 0) ^ mask;
    }
  }

  #keepSomeSectors(change: Change, random: Random): void {
    if (change.type === 'resize') {
      if (random.int(2) === 0) this.#durable.apply(change);
      return;
    }
    for (let from = 0; from < change.data.length; ) {
      const position = change.position + from;
      const length = Math.min(SECTOR_BYTES - (position % SECTOR_BYTES), change.data.length - from);
      const data = change.data.subarray(from, from + length);
      if (random.int(2) === 0) this.#durable.apply({ type: 'write', position, data });
      from += length;
    }
  }

  #change(change: Change): void {
    this.#visible.apply(change);
    this.#unsynced.push(change);
  }
}

class GrowingBytes {
  #buffer = Buffer.alloc(0);
  size = 0;

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.size);
  }

  copy(): GrowingBytes {
    const copy = new GrowingBytes();
    copy.#buffer = Buffer.from(this.bytes());
    copy.size = this.size;
    return copy;
  }

  apply(change: Change): void {
    if (change.type === 'resize') {
      this.#resize(change.size);
      return;
    }
    const end = change.position + change.data.length;
    if (end > this.size && change.data.length > 0) this.#resize(end);
    change.data.copy(this.#buffer, change.position);
  }

  #resize(size: number): void {
    if (size > this.#buffer.length) {
      const grown = Buffer.alloc(Math.max(size, Math.min(this.#buffer.length * 2, this.#buffer.length + (1 << 20))));
      this.bytes().copy(grown);
      this.#buffer = grown;
    }
    if (size < this.size) this.#buffer.fill(0, size, this.size); // bytes that the file regains read as zeros
    this.size = size;
  }
}

function clean(path: string): string {
  return path
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/');
}

function systemError(code: string, message: string): Error {
  return Object.assign(new Error(`${code}: ${message}`), { code });
}
