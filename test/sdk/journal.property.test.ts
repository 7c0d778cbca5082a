// Processes of one machine that share a journal, and are killed and started again at any moment (journal.ts J1 to J4).
import { type Disk, SeededRandom } from '@remora/base';
import { SimDisk } from '@remora/base/testing';
import fc from 'fast-check';
import type { JournalPorts, ProcessIdentity, RemoraClient } from 'remora';
import { expect, test } from 'vitest';
import { BusyThread } from '../support/busy-thread.ts';
import { World } from '../support/sdk-world.ts';

const SLOTS = 3;
const NAMES = ['a', 'b', 'c', 'd'];

const step = fc.record({
  slot: fc.nat(SLOTS - 1),
  what: fc.constantFrom('hold', 'hold', 'leave', 'kill', 'close', 'restart'),
  name: fc.constantFrom(...NAMES),
  afterMs: fc.integer({ min: 0, max: 40 }),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

interface Program {
  readonly pid: number;
  readonly client: RemoraClient;
  readonly thread: BusyThread;
  readonly held: Set<{ check(): Promise<boolean>; release(): Promise<void> }>;
  dead: boolean;
}

/** The disk as one process has it, which does nothing more once that is dead. */
function diskOf(disk: Disk, program: { readonly dead: boolean }): Disk {
  const alive = <T>(work: () => Promise<T>): Promise<T> => (program.dead ? new Promise(() => {}) : work());
  return {
    list: (dir) => alive(() => disk.list(dir)),
    makeDir: (dir) => alive(() => disk.makeDir(dir)),
    open: (path, options) => alive(() => disk.open(path, options)),
    rename: (change) => alive(() => disk.rename(change)),
    remove: (path) => alive(() => disk.remove(path)),
    syncDir: (dir) => alive(() => disk.syncDir(dir)),
  };
}

class Machine {
  readonly world = new World();
  readonly #disk: SimDisk;
  readonly #running = new Map<number, Program>();
  readonly #all: Program[] = [];

  constructor(seed: number) {
    this.#disk = new SimDisk({ random: new SeededRandom(seed), clock: this.world.clock, latencyMs: 6 });
  }

  async step({ slot, what, name, afterMs }: Step): Promise<void> {
    const program = this.#running.get(slot) ?? (await this.#start(slot));
    if (what === 'hold') this.#hold(program, name);
    else if (what === 'leave') this.#leave(program);
    else {
      if (what === 'close') await this.world.until(program.client.close());
      program.dead = true;
      program.thread.begin();
      this.#running.delete(slot);
      if (what === 'restart') await this.#start(slot);
    }
    await this.world.run(afterMs);
  }

  #hold({ client, held }: Program, name: string): void {
    // In a session that would outlive its process for long.
    client
      .lock(name)
      .acquire({ ttl: '10m' })
      .then(
        (lock) => held.add(lock),
        () => {},
      );
  }

  #leave({ held }: Program): void {
    for (const lock of held) lock.release().catch(() => {});
    held.clear();
  }

  async #start(slot: number): Promise<Program> {
    const pid = this.#all.length + 1;
    const self: ProcessIdentity = { host: 'h', boot: 'b', space: 's', pid, start: '1' };
    const isGone = (other: ProcessIdentity): boolean => this.#all.some((one) => one.pid === other.pid && one.dead);
    const thread = new BusyThread(this.world.clock);
    const life = { dead: false };
    const journal: JournalPorts = { disk: diskOf(this.#disk, life), self, isGone };
    const options = { sessionTtl: '10m', requestTimeout: '1s' } as const;
    const client = await this.world.client(options, 1, { clock: thread, journal });
    const program: Program = Object.assign(life, { pid, client, thread, held: new Set<never>() });
    this.#all.push(program);
    this.#running.set(slot, program);
    return program;
  }

  /** How many of the locks that living processes hold are theirs no longer. */
  async taken(): Promise<number> {
    const locks = [...this.#running.values()].flatMap(({ held }) => [...held]);
    const current = await this.world.until(Promise.all(locks.map((lock) => lock.check())));
    return current.filter((held) => !held).length;
  }

  /** Once all have ended, and one more has come and gone: what is left in the cluster, and on the disk. */
  async leftovers(): Promise<{ readonly sessions: number; readonly files: readonly string[] }> {
    for (const slot of [...this.#running.keys()]) await this.step({ slot, what: 'kill', name: 'a', afterMs: 0 });
    const last = await this.#start(0);
    await this.world.run(5_000);
    await this.world.until(last.client.close());
    const files = (await this.#disk.list('')).filter((name) => !name.endsWith('.tmp'));
    return { sessions: this.world.backend.sessions, files };
  }
}

test('what is left is given back as soon as somebody comes, and nothing is taken from who is there', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(), fc.array(step, { minLength: 1, maxLength: 25 }), async (seed, steps) => {
      const machine = new Machine(seed);
      for (const one of steps) await machine.step(one);
      await machine.world.run(500);
      expect(await machine.taken()).toBe(0);
      expect(await machine.leftovers()).toEqual({ sessions: 0, files: [] });
    }),
    { numRuns: 40 },
  );
});
