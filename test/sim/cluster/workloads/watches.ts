/**
 * Watches of what the other workloads change, from random revisions and from now on, over reconnects and compactions:
 * every change, in order, once, and all changes of a revision (design §10). The events are known from acknowledged
 * writes, and from other watches.
 *
 * N1. A watch from now on begins behind all changes of its keys that were acknowledged before it was asked for.
 * N2. It begins no later than anything that is requested once it has begun: it reports its first revision like an
 *     answer, and later writes have revisions above all answers (F1 of the known revisions). From there on it is
 *     complete.
 */
import { assert, ServiceError, sleep } from '@remora/base';
import type { KeySelector, KvWatch } from 'remora';
import { type Change, WatchCheck, type WatchEvent, type WatchSpan } from '../../../checkers/index.ts';
import { Violation } from '../../common/violation.ts';
import type { ClientLife } from '../sdk-client.ts';
import type { World } from '../world.ts';
import { withHands } from './ask.ts';
import { LEASED } from './leases.ts';
import { CLEARS, LISTS_PREFIX, LISTS_SPAN } from './list-view.ts';
import { busyRegisters, REGISTERS } from './registers.ts';
import type { MakeWorkload, Workload } from './workload.ts';

const LIFE_MS_MAX = 8_000;
/** How far back a watch begins at most. */
const BACK_MAX = 400;

interface Target extends WatchSpan {
  readonly selector: KeySelector;
}

/** Everything, a prefix, some keys, one key. */
const TARGETS: readonly Target[] = [
  { selector: { prefix: '' }, start: '\0', end: '' },
  { selector: { prefix: REGISTERS }, start: REGISTERS, end: 's' },
  { selector: { prefix: LISTS_PREFIX }, start: LISTS_PREFIX, end: 't0' },
  { selector: LISTS_SPAN, ...LISTS_SPAN },
  { selector: CLEARS, start: CLEARS, end: undefined },
  { selector: { prefix: LEASED }, start: LEASED, end: 'm' },
];

function targetsOf(world: World): readonly Target[] {
  const [start = '', , end = ''] = busyRegisters(world);
  return [...TARGETS, { selector: start, start, end: undefined }, { selector: { start, end }, start, end }];
}

interface Open {
  readonly life: ClientLife;
  readonly watch: KvWatch;
  readonly span: WatchSpan;
}

export const watches: MakeWorkload = (world) => new WatchLoad(world);

class WatchLoad implements Workload {
  readonly name = 'watches';
  readonly #world: World;
  readonly #check = new WatchCheck();
  readonly #open = new Map<string, Open>();
  /** The revision of the newest acknowledged change of each key and kind. */
  readonly #newest = new Map<string, Change>();
  #watches = 0;
  #fromNows = 0;
  #endedByCompaction = 0;

  constructor(world: World) {
    this.#world = world;
    world.onChange((change) => {
      this.#newest.set(`${change.kind} ${change.key}`, change);
      this.#see({ type: 'changed', ...change });
    });
  }

  run(life: ClientLife): Promise<void> {
    return withHands(this.#world, this.#world.options.hands, async () => {
      const name = this.#begin(life);
      await sleep(life.clock, life.random.int(LIFE_MS_MAX));
      if (this.#world.resting) return; // It must see everything to the end.
      this.#open.get(name)?.watch.close();
    });
  }

  ended(life: ClientLife): void {
    for (const [name, open] of this.#open) if (open.life === life) this.#open.delete(name);
  }

  /** Open watches must receive everything in the end. */
  missing(): string {
    for (const [name, { watch, span }] of this.#open) {
      for (const change of this.#newest.values()) {
        if (change.revision < watch.nextRevision || !concerns(span, change)) continue;
        return `watch ${name} is at ${watch.nextRevision}, and ${change.key} changed at ${change.revision}`;
      }
    }
    return '';
  }

  check(): void {
    for (const [name, { watch }] of this.#open) if (watch.nextRevision > 0) this.#closed(name, watch);
    this.#world.report(this.#check.finish());
  }

  figures(): Readonly<Record<string, number>> {
    const resumed = this.#world.answers.watches - this.#watches;
    return {
      watches: this.#watches,
      'from now on': this.#fromNows,
      'watches resumed': Math.max(0, resumed),
      compacted: this.#endedByCompaction,
    };
  }

  #begin(life: ClientLife): string {
    const { random, remora } = life;
    const name = `${life.name}:w${this.#watches++}`;
    const { newest } = this.#world.revisions;
    const place = random.int(6);
    const startRevision = Math.max(1, place < 2 ? newest + 1 : newest - random.int(BACK_MAX));
    const targets = targetsOf(this.#world);
    const target = targets[random.int(targets.length)];
    assert(target !== undefined, 'there is something to watch');
    const { selector, start, end } = target;
    const skipped = random.int(8);
    const filter = { noPut: skipped === 0, noDelete: skipped === 1 };
    const watch = remora.kv.watch(selector, { ...(place > 0 && { startRevision }), ...filter });
    const open = { life, watch, span: { start, end, ...filter } };
    this.#open.set(name, open);
    const following = place > 0 ? this.#follow(name, open, startRevision) : this.#fromNow(name, open);
    following.catch((error: unknown) => this.#world.fail(error));
    return name;
  }

  async #fromNow(name: string, open: Open): Promise<void> {
    const before = this.#newestOf(open.span);
    const began = open.watch.began().catch((error: unknown) => {
      if (error instanceof ServiceError && error.code === 'CANCELED') return undefined;
      throw error;
    });
    const revision = await began;
    if (revision === undefined) return void this.#open.delete(name);
    if (revision <= before) {
      throw new Violation('watch: true', `watch ${name}, from now on, begins at ${revision}, and ${before} was known`); // N1
    }
    this.#fromNows++;
    this.#world.revisions.answered(revision - 1); // N2
    await this.#follow(name, open, revision);
  }

  /** The revision of the newest acknowledged change of these keys. */
  #newestOf(span: WatchSpan): number {
    const changes = [...this.#newest.values()].filter((change) => concerns(span, change));
    return changes.reduce((newest, { revision }) => Math.max(newest, revision), 0);
  }

  async #follow(name: string, { watch, span }: Open, from: number): Promise<void> {
    this.#see({ type: 'opened', watch: name, from, ...span });
    try {
      for await (const { type, kv } of watch) {
        const change = { revision: kv.modRevision, key: kv.key.toString(), kind: type };
        this.#see({ type: 'event', watch: name, ...change, ...(type === 'put' && { value: kv.value.toString() }) });
      }
      this.#closed(name, watch);
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'COMPACTED') throw error;
      this.#compacted(name, Number(error.details?.compactRevision));
    }
    this.#open.delete(name);
  }

  /** Everything below `nextRevision` has been received. */
  #closed(name: string, watch: KvWatch): void {
    this.#see({ type: 'closed', watch: name, upTo: watch.nextRevision - 1 });
  }

  #compacted(name: string, revision: number): void {
    this.#endedByCompaction++;
    if (this.#world.revisions.mayBeCompacted(revision)) this.#see({ type: 'compaction', revision });
    this.#see({ type: 'compacted', watch: name, revision });
  }

  #see(event: WatchEvent): void {
    this.#world.report(this.#check.observe(event));
  }
}

function concerns({ start, end, noPut, noDelete }: WatchSpan, { key, kind }: Change): boolean {
  if (kind === 'put' ? noPut : noDelete) return false;
  return end === undefined ? key === start : key >= start && (end === '' || key < end);
}
