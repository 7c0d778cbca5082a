import { type Bytes, type Link, type ResidentValue, SeededRandom } from '@remora/base';
import { expect, it, vi } from 'vitest';
import { BTree } from './b-tree.ts';
import type { Picture } from './ordered-table.ts';
import { encoded, ResidentChanges } from './resident-changes.ts';
import { ResidentTable } from './resident-table.ts';

type Model = Map<string, number>;

/** The value of a link. */
const EMPTY = -1;

/** A table, what it should hold, what the store below holds, and what was frozen and is not written yet. */
class World {
  readonly random: SeededRandom;
  readonly #names: number;
  changes = new ResidentChanges();
  readonly table = new ResidentTable(this.changes);
  readonly model: Model = new Map();
  readonly #store: Model;
  #frozen: { readonly changes: ResidentChanges; readonly expected: string[] } | undefined;
  readonly pictures: { readonly picture: Picture; readonly expected: string[] }[] = [];
  /** How often values were encoded. */
  encoded = 0;

  constructor(seed: number, names: number) {
    this.random = new SeededRandom(seed);
    this.#names = names;
    for (let i = 0; i < names; i += 3) {
      this.table.load(nameOf(i), Uint8Array.of(i % 256));
      this.model.set(nameOf(i), i % 256);
    }
    this.#store = new Map(this.model);
  }

  name(): string {
    return nameOf(this.random.int(this.#names));
  }

  put(name: string): void {
    const byte = this.random.int(256);
    this.table.put(name, this.#value(byte));
    this.model.set(name, byte);
  }

  /** Of two owners: so one under a name may come while another waits there. */
  link(): void {
    const link = this.#link();
    const name = `${link.from}${link.to}`;
    const isNew = !this.model.has(name) && this.random.int(4) > 0;
    expect(this.table.isLinked(link)).toBe(this.model.has(name));
    this.table.link(link, isNew);
    this.model.set(name, EMPTY);
  }

  unlink(): void {
    const link = this.#link();
    this.table.unlink(link);
    this.model.delete(`${link.from}${link.to}`);
  }

  #link(): Link {
    const to = String(this.random.int(30));
    return { from: this.random.int(2) === 0 ? 'a/' : 'b/', to, under: `under ${to}` };
  }

  #value(byte: number): ResidentValue {
    if (this.random.int(2) === 0) return Uint8Array.of(byte);
    return {
      encode: () => {
        this.encoded++;
        return Uint8Array.of(byte);
      },
    };
  }

  /** As a clearing does: of what is on disk too. */
  clear(): void {
    const range = { start: this.name(), end: this.name() };
    this.table.forgetChanges(range);
    this.table.forgetRange(range);
    this.#write();
    for (const rows of [this.model, this.#store]) {
      for (const name of [...rows.keys()]) if (name >= range.start && name < range.end) rows.delete(name);
    }
  }

  begin(): void {
    this.#write();
    this.#frozen = { changes: this.changes, expected: shown(this.model) };
    this.changes = new ResidentChanges();
    this.table.begin(this.changes);
  }

  /** What the store would hold after the generation was written. */
  #write(): void {
    if (this.#frozen === undefined) return;
    const { changes, expected } = this.#frozen;
    this.#frozen = undefined;
    const written = [...changes.all()];
    expect(changes.keys).toBe(written.length);
    expect(changes.bytes).toBe(written.reduce((sum, [name, value]) => sum + name.length + (value?.length ?? 0), 0));
    for (const [name, value] of written) {
      if (value !== undefined) this.#store.set(name, value[0] ?? EMPTY);
      else expect(this.#store.delete(name), 'only rows that lie below are deleted').toBe(true);
    }
    expect(shown(this.#store)).toEqual(expected);
  }

  check(): void {
    expect(picture(this.table.live())).toEqual(shown(this.model));
    for (const { picture: taken, expected } of this.pictures) expect(picture(taken)).toEqual(expected);
  }
}

function nameOf(i: number): string {
  return String(i).padStart(5, '0');
}

function shown(model: Model): string[] {
  return [...model].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, byte]) => `${name}=${byte}`);
}

function picture(of: Picture): string[] {
  return [...of.entries()].map(([name, { value }]) => `${name}=${value?.[0] ?? EMPTY}`);
}

function first(value: ResidentValue | undefined): number | undefined {
  return value && (encoded(value) as Bytes)[0];
}

function step(world: World): void {
  const { random, table, model } = world;
  const what = random.int(1000);
  const name = world.name();
  if (what < 100) world.link();
  else if (what < 190) world.unlink();
  else if (what < 550) world.put(name);
  else if (what < 940) {
    table.delete(name);
    model.delete(name);
  } else if (what < 970) expect(first(table.get(name))).toBe(model.get(name));
  else if (what < 990) expect(table.bytes(name)?.[0]).toBe(model.get(name));
  else if (what < 993) world.begin();
  else if (what < 996) world.pictures.push({ picture: table.picture(), expected: shown(model) });
  else if (what < 998) world.check();
  else if (what < 999) world.clear();
}

it('equals its model, its pictures never change, and its generations write just what brings the store up to it', () => {
  for (const [seed, names] of [1, 2, 3, 4, 5, 6].map((seed) => [seed, seed % 2 === 0 ? 60 : 600] as const)) {
    const world = new World(seed, names);
    for (let i = 0; i < 4_000; i++) step(world);
    world.begin();
    world.begin();
    world.check();
    expect(world.pictures.length).toBeGreaterThan(0);
  }
});

it('what comes and goes is neither encoded nor written, however much of it there is', () => {
  const world = new World(7, 20_000);
  world.begin();
  for (let i = 0; i < 20_000; i++) {
    const name = `${nameOf(i)}/new`;
    world.put(name);
    world.put(name);
    world.table.delete(name);
    world.model.delete(name);
  }
  expect(world.encoded).toBe(0);
  expect([world.changes.keys, world.changes.bytes]).toEqual([0, 0]);
  world.begin();
  world.begin();
  expect(world.encoded).toBe(0);
  world.check();
});

it('rows that stay for a moment get no place while others come and go', () => {
  const world = new World(10, 1);
  const stay = 1_000;
  for (let i = 1; i <= 20_000; i++) {
    world.put(nameOf(i));
    if (i <= stay) continue;
    world.table.delete(nameOf(i - stay));
    world.model.delete(nameOf(i - stay));
  }
  expect(world.encoded).toBe(0);
  expect(world.changes.keys).toBe(stay);
  world.check();
  expect(world.encoded).toBeGreaterThan(0);
  world.begin();
  world.begin();
});

it('values that are not encoded are few at any time', () => {
  const world = new World(8, 1);
  let unencoded = 0;
  for (let i = 0; i < 20_000; i++) {
    unencoded++;
    const value = {
      encode: () => {
        unencoded--;
        return Uint8Array.of(1);
      },
    };
    world.table.put(nameOf(i), value);
    expect(unencoded).toBeLessThanOrEqual(4_096);
  }
});

it('one change places at most 256 cells or links, although thousands wait (RT4)', () => {
  const world = new World(12, 1);
  const placed = vi.spyOn(BTree.prototype, 'set');
  let most = 0;
  const change = (work: () => void): void => {
    placed.mockClear();
    work();
    most = Math.max(most, placed.mock.calls.length);
  };
  for (let i = 1; i < 12_000; i++) {
    change(() => world.put(nameOf(i)));
    change(() => world.table.link({ from: 'a/', to: nameOf(i), under: nameOf(i) }, true));
    world.model.set(`a/${nameOf(i)}`, EMPTY);
  }
  placed.mockRestore();
  expect(most).toBe(256);
  world.check();
  world.begin();
  world.begin();
});

it('a row that is changed again and again between pictures is not remembered each time', () => {
  const world = new World(11, 1);
  world.begin();
  for (let i = 0; i < 30_000; i++) {
    world.put('00000');
    world.table.picture();
  }
  expect([world.changes.keys, world.changes.remembered < 5_000]).toEqual([1, true]);
  world.begin();
  world.begin();
});

it('a row that is deleted and put again by turns is not remembered each time', () => {
  const world = new World(9, 1);
  world.begin();
  for (let i = 0; i < 30_000; i++) {
    world.table.delete('00000');
    world.table.put('00000', Uint8Array.of(i % 256));
    world.model.set('00000', i % 256);
    world.table.live();
  }
  expect(world.changes.remembered).toBeLessThan(20_000);
  world.begin();
  world.begin();
});
