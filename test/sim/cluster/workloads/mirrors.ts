/**
 * Local copies of what the other workloads change (`kv.mirror`), over reconnects and compactions.
 *
 * M1. The copy is what the keys were at its revision: equal to what a read of that revision returns, to the last field,
 *     and to other copies (`MirrorCheck`). Samples are often taken in the moment of a change.
 * M2. Its revision never goes back. When it says that it has reached a revision, it has.
 * M3. It never ends by itself, however long it is cut off and whatever is compacted meanwhile.
 * M4. When nothing changes any more, it becomes equal to what there is.
 */
import { assert, sleep } from '@remora/base';
import type { KvMirror } from 'remora';
import { type Change, MirrorCheck, type MirrorEvent } from '../../../checkers/index.ts';
import { Violation } from '../../common/violation.ts';
import { type ClientLife, lifeOf } from '../sdk-client.ts';
import type { World } from '../world.ts';
import { ask, withHands } from './ask.ts';
import { ACCOUNTS } from './bank.ts';
import { COUNTERS } from './counters.ts';
import { textOf } from './history.ts';
import { LEASED } from './leases.ts';
import { LISTS_PREFIX } from './list-view.ts';
import { REGISTERS } from './registers.ts';
import type { MakeWorkload, Workload } from './workload.ts';

const PREFIXES: readonly string[] = ['', ACCOUNTS, ACCOUNTS, COUNTERS, LISTS_PREFIX, LISTS_PREFIX, REGISTERS, LEASED];
const LIFE_MS_MAX = 20_000;
/** The longest time between two samples of a copy. */
const SAMPLE_MS_MAX = 1_500;
/** M4. */
const CONVERGES_MS_MAX = 15_000;
const LOOK_MS = 200;

interface Open {
  readonly life: ClientLife;
  readonly name: string;
  readonly prefix: string;
  readonly mirror: KvMirror;
  /** Takes a sample at the next change. */
  onChange: (() => void) | undefined;
}

export const mirrors: MakeWorkload = (world) => new MirrorLoad(world);

class MirrorLoad implements Workload {
  readonly name = 'mirrors';
  readonly #world: World;
  readonly #check = new MirrorCheck();
  readonly #open = new Set<Open>();
  /** The newest acknowledged change of each key. */
  readonly #newest = new Map<string, Change>();
  #mirrors = 0;
  #compared = 0;
  #compacted = 0;

  constructor(world: World) {
    this.#world = world;
    world.onChange((change) => this.#newest.set(change.key, change));
  }

  run(life: ClientLife): Promise<void> {
    return withHands(this.#world, 2, async () => {
      const open = this.#begin(life);
      const endMs = this.#nowMs + life.random.int(LIFE_MS_MAX);
      while (!this.#world.resting && this.#nowMs < endMs) await this.#look(open);
      if (this.#world.resting) return; // M4.
      this.#open.delete(open);
      open.mirror.close();
    });
  }

  ended(life: ClientLife): void {
    for (const open of this.#open) if (open.life === life) this.#open.delete(open);
  }

  /** Open copies must receive everything in the end. */
  missing(): string {
    for (const { name, prefix, mirror } of this.#open) {
      const newest = this.#newestOf(prefix);
      if (mirror.revision < newest) return `copy ${name} is at ${mirror.revision}, and a key changed at ${newest}`;
    }
    return '';
  }

  /** M4. */
  async check(): Promise<void> {
    const { remora, clock } = lifeOf(this.#world.clientAt(0));
    const endMs = this.#nowMs + CONVERGES_MS_MAX;
    for (const { name, prefix, mirror } of this.#open) {
      for (;;) {
        const content = textOf((await remora.kv.range({ prefix })).kvs);
        const shown = textOf(mirror.values());
        if (shown === content) break;
        const differs = `copy ${name} of "${prefix}", at ${mirror.revision}, has\n${shown}\nand there is\n${content}`;
        if (this.#nowMs >= endMs) throw new Violation('mirror: converges', differs);
        await sleep(clock, LOOK_MS);
      }
    }
    const open = [...this.#open];
    this.#open.clear();
    for (const { mirror } of open) mirror.close();
    this.#world.report(this.#check.finish());
  }

  figures(): Readonly<Record<string, number>> {
    return {
      mirrors: this.#mirrors,
      'mirrors compared': this.#compared,
      'mirrors behind a compaction': this.#compacted,
    };
  }

  get #nowMs(): number {
    return this.#world.loop.monotonicMs();
  }

  #begin(life: ClientLife): Open {
    const name = `${life.name}:m${this.#mirrors++}`;
    const prefix = PREFIXES[life.random.int(PREFIXES.length)];
    assert(prefix !== undefined, 'there is something to copy');
    const mirror = life.remora.kv.mirror({ prefix });
    const open: Open = { life, name, prefix, mirror, onChange: undefined };
    this.#open.add(open);
    mirror.onChange(() => {
      this.#see({ type: 'shows', mirror: name, span: prefix, revision: mirror.revision });
      open.onChange?.();
    });
    mirror.signal.addEventListener('abort', () => {
      if (!this.#open.has(open)) return;
      this.#world.fail(new Violation('mirror: goes on', `copy ${name} ended: ${mirror.signal.reason}`)); // M3
    });
    return open;
  }

  async #look(open: Open): Promise<void> {
    const { life, prefix } = open;
    const waitMs = 1 + life.random.int(SAMPLE_MS_MAX);
    if (life.random.int(4) === 0) this.#reach(open);
    const revision = await (life.random.int(3) === 0
      ? this.#sampleAfter(open, waitMs)
      : this.#nextSample(open, waitMs));
    if (revision === undefined) return;
    const asked = await ask(
      { world: this.#world, life, what: "read of a copy's revision" },
      () => life.remora.kv.range({ prefix }, { revision }),
      ['COMPACTED'],
    );
    if (asked.type === 'refused' && asked.code === 'COMPACTED') this.#compacted++;
    if (asked.type !== 'answer') return;
    this.#compared++;
    this.#see({ type: 'stored', span: prefix, revision, content: textOf(asked.value.kvs) });
  }

  async #sampleAfter(open: Open, waitMs: number): Promise<number | undefined> {
    await sleep(open.life.clock, waitMs);
    return this.#sample(open);
  }

  /** A sample at the next change, or after a while. */
  async #nextSample(open: Open, waitMs: number): Promise<number | undefined> {
    let sampled: number | undefined;
    const ended = new AbortController();
    open.onChange = () => {
      sampled ??= this.#sample(open);
      ended.abort();
    };
    await sleep(open.life.clock, waitMs, ended.signal).catch(() => undefined);
    open.onChange = undefined;
    return sampled ?? this.#sample(open);
  }

  /** Returns its revision; undefined if the copy does not exist yet, or no more. */
  #sample({ name, prefix, mirror }: Open): number | undefined {
    const { revision, signal } = mirror;
    if (revision === 0 || signal.aborted) return undefined;
    this.#see({ type: 'shows', mirror: name, span: prefix, revision, content: textOf(mirror.values()) });
    return revision;
  }

  /** M2. Nobody waits for it: without a connection it lasts as long as the copy. */
  #reach({ name, prefix, mirror }: Open): void {
    const asked = this.#newestOf(prefix);
    mirror.reaches(asked).then(
      () => this.#see({ type: 'reached', mirror: name, asked, revision: mirror.revision }),
      () => undefined,
    );
  }

  #newestOf(prefix: string): number {
    const changes = [...this.#newest.values()].filter(({ key }) => key.startsWith(prefix));
    return changes.reduce((newest, { revision }) => Math.max(newest, revision), 0);
  }

  #see(event: MirrorEvent): void {
    this.#world.report(this.#check.observe(event));
  }
}
