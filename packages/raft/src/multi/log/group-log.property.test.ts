// Random calls on the disk log with crashes at random moments, against a naive model that keeps every call.
import { ManualClock, SeededRandom, SimDisk, silentLogger } from '@remora/base';
import { describe, expect, it } from 'vitest';
import type { Entry, HardState, LogPosition } from '../../core/types.ts';
import type { GroupAppend, GroupId, GroupLog, RecoveredGroup } from '../ports.ts';
import { openGroupLog } from './group-log.ts';

type Call =
  | { readonly type: 'append'; readonly batch: readonly GroupAppend[] }
  | { readonly type: 'compact'; readonly groupId: GroupId; readonly position: LogPosition }
  | { readonly type: 'remove'; readonly groupId: GroupId };

interface ModelGroup {
  hardState: HardState;
  /** Where the log restarted last. */
  origin: LogPosition;
  compacted: number;
  /** Everything since the origin, compacted or not. */
  entries: Entry[];
}

type Model = Map<GroupId, ModelGroup>;

function applyCall(model: Model, call: Call): void {
  if (call.type === 'remove') model.delete(call.groupId);
  else if (call.type === 'compact') {
    const group = model.get(call.groupId);
    if (group !== undefined) group.compacted = Math.max(group.compacted, call.position.index);
  } else for (const append of call.batch) applyAppend(model, append);
}

function applyAppend(model: Model, append: GroupAppend): void {
  const group = model.get(append.groupId) ?? {
    hardState: { term: 0, vote: 0, commit: 0 },
    origin: { index: 0, term: 0 },
    compacted: 0,
    entries: [],
  };
  model.set(append.groupId, group);
  if (append.hardState !== undefined) group.hardState = append.hardState;
  if (append.restartAt !== undefined) {
    group.origin = append.restartAt;
    group.compacted = append.restartAt.index;
    group.entries = [];
  }
  const first = append.entries[0]?.index;
  if (first !== undefined)
    group.entries = [...group.entries.slice(0, first - group.origin.index - 1), ...append.entries];
}

/** Why `found` is not what the model says; undefined when it is. */
function difference(model: Model, found: ReadonlyMap<GroupId, RecoveredGroup>): string | undefined {
  if ([...model.keys()].sort().join() !== [...found.keys()].sort().join()) {
    return `groups ${[...found.keys()].sort().join()}, expected ${[...model.keys()].sort().join()}`;
  }
  for (const [groupId, group] of model) {
    const got = found.get(groupId);
    if (got === undefined) return `group ${groupId} is missing`;
    const start = got.start.index;
    if (start < group.origin.index || start > group.compacted) return `group ${groupId} starts after ${start}`;
    const before =
      start === group.origin.index ? group.origin.term : group.entries[start - group.origin.index - 1]?.term;
    if (before !== got.start.term) return `group ${groupId}: start term ${got.start.term}, expected ${before}`;
    if (JSON.stringify(got.hardState) !== JSON.stringify(group.hardState)) return `group ${groupId}: hard state`;
    const expected = group.entries.slice(start - group.origin.index);
    if (show(expected) !== show(got.entries)) {
      return `group ${groupId}: entries ${show(got.entries)}, expected ${show(expected)}`;
    }
  }
  return undefined;
}

function show(entries: readonly Entry[]): string {
  return entries
    .map((e) => `${e.index}/${e.term}/${e.type}/${e.data.length}/${Buffer.from(e.data.subarray(0, 8)).toString('hex')}`)
    .join();
}

const GROUPS = [1, 2, 3, 4, 2 ** 40];

class Run {
  readonly #random: SeededRandom;
  readonly #clock = new ManualClock();
  readonly #disk: SimDisk;
  /** Calls that are known to be in the log at the last recovery, applied. */
  #base: Model = new Map();
  #calls: Call[] = [];
  #acknowledged = 0;
  #term = 1;
  reclaimed = 0;
  moved = 0;

  constructor(seed: number) {
    this.#random = new SeededRandom(seed);
    this.#disk = new SimDisk({ random: this.#random, clock: this.#clock, latencyMs: 2 });
  }

  async cycle(): Promise<void> {
    const log = await this.#open();
    if (log === undefined) return;
    this.#adopt(log.recovered());
    const model: Model = structuredClone(this.#base);
    for (const group of model.values()) group.entries = group.entries.map((e) => ({ ...e, data: Buffer.from(e.data) }));
    const steps = 20 + this.#random.int(150);
    for (let i = 0; i < steps; i++) {
      this.#call(log, model);
      if (this.#random.int(3) === 0) await this.#advance(1 + this.#random.int(6));
    }
    const stats = log.stats();
    this.reclaimed += 'segmentsReclaimed' in stats ? Number(stats.segmentsReclaimed) : 0;
    this.moved += 'bytesMoved' in stats ? Number(stats.bytesMoved) : 0;
    if (this.#random.int(4) === 0) {
      await this.#drive(log.close());
      this.#acknowledged = this.#calls.length;
    }
    if (this.#random.int(4) === 0) this.#disk.kill();
    else this.#disk.crash();
  }

  /** Opens the log; now and then the machine crashes again while it is being opened. */
  async #open(): Promise<GroupLog | undefined> {
    const opening = openGroupLog({
      disk: this.#disk.mount(),
      dir: 'log',
      options: { segmentBytes: 4096, writeBytesMax: 2000 },
      logger: silentLogger,
      onFailure: (error) => {
        throw error;
      },
    });
    if (this.#random.int(4) > 0) return this.#drive(opening);
    let opened: GroupLog | undefined;
    opening.then(
      (log) => {
        opened = log;
      },
      (error: unknown) => {
        throw error;
      },
    );
    await this.#advance(this.#random.int(30));
    if (opened === undefined) this.#disk.crash();
    return opened;
  }

  /** L2: what was recovered is a prefix of the calls that includes everything called back. */
  #adopt(found: ReadonlyMap<GroupId, RecoveredGroup>): void {
    const model = this.#base;
    let matched: Model | undefined;
    let why = '';
    for (let count = 0; count <= this.#calls.length; count++) {
      if (count > 0) {
        const call = this.#calls[count - 1];
        if (call !== undefined) applyCall(model, call);
      }
      if (count < this.#acknowledged) continue;
      const different = difference(model, found);
      if (different === undefined) matched = structuredClone(model);
      else if (why === '') why = different;
    }
    if (matched === undefined) throw new Error(`no prefix from ${this.#acknowledged} of ${this.#calls.length}: ${why}`);
    for (const group of matched.values())
      group.entries = group.entries.map((e) => ({ ...e, data: Buffer.from(e.data) }));
    this.#base = matched;
    this.#calls = [];
    this.#acknowledged = 0;
  }

  #call(log: GroupLog, model: Model): void {
    const dice = this.#random.int(20);
    // Group 4 is slow: its entries must be moved.
    const groupId = GROUPS[this.#random.int(GROUPS.length)] ?? 1;
    const group = model.get(groupId);
    let call: Call;
    if (dice === 0 && this.#random.int(3) === 0) call = { type: 'remove', groupId };
    else if (dice < 6) {
      if (group === undefined || groupId === 4) return;
      // Only what is acknowledged may be compacted; here that is what the applied prefix of calls holds.
      const index = this.#compactable(groupId, group);
      if (index === undefined) return;
      call = { type: 'compact', groupId, position: index };
    } else {
      if (groupId === 4 && this.#random.int(4) > 0) return;
      call = { type: 'append', batch: this.#batch(model) };
    }
    applyCall(model, call);
    this.#calls.push(call);
    const count = this.#calls.length;
    if (call.type === 'remove') log.removeGroup(call.groupId);
    else if (call.type === 'compact') log.compact(call.groupId, call.position);
    else {
      log.append(call.batch, () => {
        expect(count).toBeGreaterThan(this.#acknowledged); // L1
        this.#acknowledged = count;
      });
    }
  }

  #compactable(groupId: GroupId, group: ModelGroup): LogPosition | undefined {
    const durable: Model = structuredClone(this.#base);
    for (const call of this.#calls.slice(0, this.#acknowledged)) applyCall(durable, call);
    const limit = durable.get(groupId);
    if (limit === undefined || limit.origin.index !== group.origin.index || limit.entries.length === 0)
      return undefined;
    const at = this.#random.int(Math.min(limit.entries.length, group.entries.length) + 1) - 1;
    const entry = group.entries[at];
    const same = limit.entries[at];
    if (entry === undefined || same === undefined || entry.term !== same.term || entry.index <= group.compacted) {
      return undefined;
    }
    return { index: entry.index, term: entry.term };
  }

  #batch(model: Model): GroupAppend[] {
    const ids = new Set(Array.from({ length: 1 + this.#random.int(3) }, () => GROUPS[this.#random.int(5)] ?? 1));
    return [...ids].map((groupId) => {
      const group = model.get(groupId);
      const append: { -readonly [K in keyof GroupAppend]: GroupAppend[K] } = { groupId, entries: [] };
      if (this.#random.int(3) === 0) {
        append.hardState = { term: this.#term, vote: this.#random.int(9), commit: this.#random.int(1000) };
      }
      let last = (group?.origin.index ?? 0) + (group?.entries.length ?? 0);
      if (this.#random.int(40) === 0) {
        last += this.#random.int(50);
        append.restartAt = { index: last, term: this.#term };
      } else if (this.#random.int(5) === 0) {
        // Never below what is compacted: committed entries are not truncated.
        last = Math.max(last - this.#random.int(4), group?.compacted ?? 0);
        this.#term++;
      }
      append.entries = this.#entries(last + 1);
      return append;
    });
  }

  #entries(first: number): Entry[] {
    const size = this.#random.int(30) === 0 ? 6000 : 120;
    return Array.from({ length: this.#random.int(5) }, (_, i) => ({
      index: first + i,
      term: this.#term,
      type: this.#random.int(6) === 0 ? 'conf' : 'normal',
      data: this.#random.bytes(this.#random.int(size)),
    }));
  }

  async #advance(steps: number): Promise<void> {
    for (let i = 0; i < steps; i++) {
      this.#clock.fireNext();
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }

  async #drive<T>(work: Promise<T>): Promise<T> {
    let settled = false;
    const watched = work.finally(() => {
      settled = true;
    });
    watched.catch(() => {});
    for (let i = 0; !settled; i++) {
      if (i > 10_000) throw new Error('the log does not come to rest');
      await this.#advance(1);
    }
    return watched;
  }
}

describe('the disk log under crashes', () => {
  it('recovers a prefix of the calls that includes all acknowledged ones, again and again (L1, L2)', async () => {
    const only = process.env.LOG_SEED;
    const seeds = only === undefined ? Array.from({ length: 60 }, (_, i) => i + 1) : [Number(only)];
    let [reclaimed, moved] = [0, 0];
    for (const seed of seeds) {
      const run = new Run(seed);
      try {
        for (let i = 0; i < 8; i++) await run.cycle();
      } catch (error) {
        throw new Error(`replay with: LOG_SEED=${seed} npx vitest run packages/raft/src/multi/log`, { cause: error });
      }
      reclaimed += run.reclaimed;
      moved += run.moved;
    }
    // The run means little if it never came this far.
    if (only === undefined) {
      expect(reclaimed).toBeGreaterThan(100);
      expect(moved).toBeGreaterThan(1000);
    }
  });
});
