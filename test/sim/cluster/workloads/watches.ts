/**
 * Watches of the registers, from random revisions, over reconnects: every change, in order, once (design §10). What
 * happened is known from writes that were acknowledged, and from what other watches saw.
 */
import { ServiceError, sleep } from '@remora/base';
import type { KvWatch } from 'remora';
import { WatchCheck, type WatchEvent } from '../../../checkers/index.ts';
import type { ClientLife } from '../sdk-client.ts';
import type { World } from '../world.ts';
import { REGISTERS } from './registers.ts';
import type { MakeWorkload, Workload } from './workload.ts';

const LIFE_MS_MAX = 8_000;

export const watches: MakeWorkload = (world) => new WatchLoad(world);

class WatchLoad implements Workload {
  readonly name = 'watches';
  readonly #world: World;
  readonly #check = new WatchCheck();
  readonly #open = new Map<string, { readonly life: ClientLife; readonly watch: KvWatch }>();

  constructor(world: World) {
    this.#world = world;
    world.onChange((change) => this.#see({ type: 'changed', ...change }));
  }

  async run(life: ClientLife): Promise<void> {
    const { random, clock } = life;
    for (let n = 0; !this.#world.resting; n++) {
      const name = `${life.name}:w${n}`;
      const newest = this.#world.newestRevision;
      const from = Math.max(1, random.int(3) === 0 ? newest + 1 : newest - random.int(200));
      const watch = life.remora.kv.watch({ prefix: REGISTERS }, { startRevision: from });
      this.#see({ type: 'opened', watch: name, from, start: REGISTERS, end: 's' });
      this.#open.set(name, { life, watch });
      void this.#follow(name, watch).catch((error: unknown) => this.#world.fail(error));
      await sleep(clock, random.int(LIFE_MS_MAX));
      if (this.#world.resting) return;
      this.#open.delete(name);
      watch.close();
    }
  }

  ended(life: ClientLife): void {
    for (const [name, open] of this.#open) if (open.life === life) this.#open.delete(name);
  }

  /** Watches that are open come to see everything. */
  missing(): string {
    const newest = this.#world.newestRevision;
    for (const [name, { watch }] of this.#open) {
      if (watch.nextRevision <= newest) return `watch ${name} is at ${watch.nextRevision} of ${newest}`;
    }
    return '';
  }

  check(): void {
    for (const [name, { watch }] of this.#open)
      this.#see({ type: 'closed', watch: name, upTo: watch.nextRevision - 1 });
    this.#world.report(this.#check.finish());
  }

  async #follow(name: string, watch: KvWatch): Promise<void> {
    try {
      for await (const { type, kv } of watch) {
        const change = { revision: kv.modRevision, key: kv.key.toString() };
        if (type === 'put')
          this.#see({ type: 'event', watch: name, ...change, kind: 'put', value: kv.value.toString() });
        else this.#see({ type: 'event', watch: name, ...change, kind: 'delete' });
      }
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'COMPACTED') throw error;
      this.#open.delete(name);
    }
  }

  #see(event: WatchEvent): void {
    this.#world.report(this.#check.observe(event));
  }
}
