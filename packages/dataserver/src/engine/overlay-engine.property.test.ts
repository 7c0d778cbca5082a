import {
  type Engine,
  type EngineView,
  type Row,
  type ScanOptions,
  SeededRandom,
  silentLogger,
  spanContains,
} from '@remora/base';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { turningClock } from '../../test/support/engine-contract.ts';
import { MemoryMedium, MemoryStore } from '../testing/memory-store.ts';
import { nameOf } from './latin1.ts';
import { OverlayEngine } from './overlay-engine.ts';
import type { StoreBatch } from './store.ts';

const RESIDENT = { start: Uint8Array.of(0x61), end: Uint8Array.of(0x63) };
const KEYS = [0x60, 0x61, 0x62, 0x63, 0xf0].flatMap((space) =>
  [[], [0x00], [0x00, 0xff], [0x7f], [0x80]].map((rest) => Uint8Array.of(space, ...rest)),
);

type Model = ReadonlyMap<string, string>;

function modelRows(model: Model, options: ScanOptions): string[] {
  const [start, end] = [nameOf(options.start), nameOf(options.end)];
  const names = [...model.keys()].sort((a, b) => (a < b ? -1 : 1));
  const inside = names.filter((name) => name >= start && (end === '' || name < end));
  if (options.reverse === true) inside.reverse();
  return inside.slice(0, options.limit || undefined).map((name) => `${name}=${model.get(name)}`);
}

function show(rows: readonly Row[]): string[] {
  return rows.map((row) => `${nameOf(row.key)}=${nameOf(row.value)}`);
}

/** The answer to a process that has crashed: none. */
const NEVER = new Promise<never>(() => {});
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A store whose every step waits at a gate, so that a crash can come between any two of them. */
class World {
  readonly random: SeededRandom;
  readonly medium = new MemoryMedium();
  /** What the engine holds, and what a crash would leave. */
  live = new Map<string, string>();
  durable: Model = new Map();
  #frozen: Model = new Map();
  #checkpointing = false;
  #gates: (() => void)[] = [];
  #store: MemoryStore | undefined;
  #engine: Engine | undefined;
  views: { view: EngineView; model: Model }[] = [];
  scans: { rows: Promise<readonly Row[]>; expected: string[] }[] = [];

  constructor(seed: number) {
    this.random = new SeededRandom(seed);
  }

  /**
   * Opens the engine of a new life. For a few microtasks after a crash, the engine of the last life may still run, and
   * even begin a checkpoint. The model ignores it.
   */
  async open(): Promise<void> {
    const store = new MemoryStore(this.medium);
    const makeBatch = store.batch.bind(store);
    store.batch = () => this.#gatedBatch(store, makeBatch());
    this.#store = store;
    this.#checkpointing = false;
    this.#gates = [];
    this.#engine = await OverlayEngine.open(store, {
      options: { resident: [RESIDENT] },
      clock: turningClock((fn) => void setImmediate(fn)),
      logger: silentLogger,
      logDurable: () => {
        if (this.#store !== store) return NEVER;
        this.#checkpointing = true;
        return this.#gate();
      },
      onFailure(error) {
        throw error;
      },
    });
    this.engine.onCheckpoint(() => {
      if (this.#store === store) this.#frozen = new Map(this.live);
    });
  }

  get engine(): Engine {
    if (this.#engine === undefined) throw new Error('not open');
    return this.#engine;
  }

  #gate(): Promise<void> {
    return new Promise((resolve) => this.#gates.push(resolve));
  }

  #gatedBatch(store: MemoryStore, batch: StoreBatch): StoreBatch {
    const deleted: string[] = [];
    return {
      put: (key, value) => batch.put(key, value),
      delete: (key) => {
        deleted.push(nameOf(key));
        batch.delete(key);
      },
      write: async () => {
        if (this.#store !== store) return NEVER;
        await this.#gate(); // crash: before the batch
        if (this.#checkpointing) {
          const resident = deleted.filter((name) => name >= 'a' && name < 'c');
          for (const name of resident) expect(this.medium.rows.has(name), 'O3: only rows that are on disk').toBe(true);
          this.durable = this.#frozen;
        } else {
          const rest = new Map(this.durable);
          for (const name of deleted) rest.delete(name);
          this.durable = rest;
        }
        this.#checkpointing = false;
        await batch.write();
        expect(show([...this.medium.all()])).toEqual(modelRows(this.durable, { start: EMPTY, end: EMPTY }));
        await this.#gate(); // crash: durable, not dropped
      },
    };
  }

  /** Lets the store take one step. */
  async advance(): Promise<void> {
    this.#gates.shift()?.();
    await turn();
  }

  async crash(): Promise<void> {
    await this.settleScans();
    this.#store?.crash();
    this.views = [];
    await this.open();
    this.live = new Map(this.durable);
  }

  async settleScans(): Promise<void> {
    for (const { rows, expected } of this.scans.splice(0)) expect(show(await rows)).toEqual(expected);
  }

  key(): Uint8Array {
    return KEYS[this.random.int(KEYS.length)] ?? EMPTY;
  }

  options(): ScanOptions {
    const [start, end] = [this.random.int(4) === 0 ? EMPTY : this.key(), this.random.int(4) === 0 ? EMPTY : this.key()];
    return { start, end, limit: this.random.int(6), reverse: this.random.int(2) === 0 };
  }
}

const EMPTY = new Uint8Array(0);

async function checkAll(world: World): Promise<void> {
  for (const key of KEYS) {
    const value = world.engine.get(key);
    expect(value === undefined ? undefined : nameOf(value)).toBe(world.live.get(nameOf(key)));
    if (spanContains(RESIDENT, key))
      expect(world.engine.getResident(nameOf(key)) !== undefined).toBe(world.live.has(nameOf(key)));
  }
  const resident = { ...RESIDENT, reverse: world.random.int(2) === 0, limit: world.random.int(4) };
  expect(show(world.engine.scanResident(resident))).toEqual(modelRows(world.live, resident));
}

async function checkView(world: World): Promise<void> {
  const at = world.random.int(world.views.length);
  const entry = world.views[at];
  if (entry === undefined) return;
  const options = world.options();
  const rows: Row[] = [];
  for await (const batch of entry.view.scan(options)) rows.push(...batch);
  expect(show(rows)).toEqual(modelRows(entry.model, options));
  for (const key of KEYS) {
    const value = entry.view.get(key);
    expect(value === undefined ? undefined : nameOf(value)).toBe(entry.model.get(nameOf(key)));
  }
  if (world.random.int(2) === 0) {
    entry.view.release();
    world.views.splice(at, 1);
  }
}

function clear(world: World): void {
  const { start, end } = world.options();
  for (const line of modelRows(world.live, { start, end })) world.live.delete(line.slice(0, line.indexOf('=')));
  void world.engine.clearSpan({ start, end });
}

/** Whether a resident row is to be changed by its name. */
function isNamed(world: World, key: Uint8Array): boolean {
  return spanContains(RESIDENT, key) && world.random.int(2) === 0;
}

async function step(world: World): Promise<void> {
  const { random } = world;
  const what = random.int(100);
  if (what < 32) {
    const [key, value] = [world.key(), String(random.int(1000))];
    if (isNamed(world, key)) world.engine.putResident(nameOf(key), { encode: () => Buffer.from(value) });
    else world.engine.put(key, Buffer.from(value));
    world.live.set(nameOf(key), value);
  } else if (what < 52) {
    const key = world.key();
    if (isNamed(world, key)) world.engine.deleteResident(nameOf(key));
    else world.engine.delete(key);
    world.live.delete(nameOf(key));
  } else if (what < 58) {
    const options = world.options();
    world.scans.push({ rows: world.engine.scan(options), expected: modelRows(world.live, options) });
  } else if (what < 62) {
    if (world.views.length < 4) world.views.push({ view: world.engine.view(), model: new Map(world.live) });
  } else if (what < 66) await checkView(world);
  else if (what < 74) void world.engine.checkpoint();
  else if (what < 90) await world.advance();
  else if (what < 93) await world.settleScans();
  else if (what < 95) clear(world);
  else if (what < 97) await world.crash();
  else await checkAll(world);
}

async function run(seed: number): Promise<void> {
  const world = new World(seed);
  await world.open();
  for (let i = 0; i < 150; i++) await step(world);
  await world.settleScans();
  await checkAll(world);
  const last = world.engine.checkpoint();
  let durable = false;
  void last.then(() => {
    durable = true;
  });
  while (!durable) await world.advance();
  expect(world.engine.pending()).toEqual({ bytes: 0, keys: 0 });
  expect(show([...world.medium.all()])).toEqual(modelRows(world.live, { start: EMPTY, end: EMPTY }));
  await world.crash();
  await checkAll(world);
}

it('equals a naive map under changes, scans, views, clears, checkpoints and a crash at any step', async () => {
  await fc.assert(fc.asyncProperty(fc.integer({ min: 1, max: 2 ** 31 - 1 }), run), {
    numRuns: 250,
    endOnFailure: true,
  });
});
