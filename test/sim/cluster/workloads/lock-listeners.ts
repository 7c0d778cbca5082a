/** Listeners to the events of one lock or of all locks, for a while each. `LockStoryCheck` checks what they receive. */
import { sleep } from '@remora/base';
import type { LockId } from '@remora/lock';
import type { LocksWatchEvent } from 'remora';
import { LockStoryCheck, type StoryEvent } from '../../../checkers/index.ts';
import type { ClientLife } from '../sdk-client.ts';
import type { World } from '../world.ts';
import { think, withHands } from './ask.ts';
import type { MakeWorkload, Workload } from './workload.ts';

const SELDOM = 4;
const LISTENS_MS_MAX = 8_000;
/** One in this many listens to all locks. */
const TO_ALL = 3;

/** `names`: the locks that there are. */
export function lockListeners(names: readonly string[]): MakeWorkload {
  return (world) => new LockListeners(world, names);
}

interface Listener {
  readonly listener: string;
  /** The locks that it received events of. */
  readonly heard: Set<string>;
}

class LockListeners implements Workload {
  readonly name = 'listeners';
  readonly #world: World;
  readonly #names: readonly string[];
  readonly #check = new LockStoryCheck();
  #listeners = 0;

  constructor(world: World, names: readonly string[]) {
    this.#world = world;
    this.#names = names;
  }

  run(life: ClientLife): Promise<void> {
    return withHands(this.#world, 1, async () => {
      await think(this.#world, life, SELDOM);
      await this.#listen(life);
    });
  }

  check(): void {
    this.#world.report(this.#check.finish());
  }

  figures(): Readonly<Record<string, number>> {
    return { 'listeners to locks': this.#listeners, 'events of locks': this.#check.told };
  }

  async #listen(life: ClientLife): Promise<void> {
    const { random, clock, remora } = life;
    const listener = `${life.name} listening ${this.#listeners++}`;
    const name = this.#names[random.int(this.#names.length)] ?? '';
    const events = random.int(TO_ALL) === 0 ? remora.locks.events() : remora.lock(name).events();
    const heard = new Set<string>();
    const listening = (async () => {
      for await (const event of events) this.#hear({ listener, heard }, event);
    })();
    const over = sleep(clock, random.int(LISTENS_MS_MAX)).then(() => events.return());
    await Promise.all([listening, over]);
  }

  #hear({ listener, heard }: Listener, event: LocksWatchEvent): void {
    switch (event.type) {
      case 'begin':
        for (const lock of heard) if (isBetween(lock, event)) this.#see({ type: 'interrupted', listener, lock });
        return;
      case 'live':
        return;
      case 'state': {
        const { revision, state } = event;
        const lock = nameOf(event.lock);
        heard.add(lock);
        return this.#see({ type: 'state', listener, lock, revision, state });
      }
      default: {
        const { lock: id, revision, ...told } = event;
        const lock = nameOf(id);
        heard.add(lock);
        return this.#see({ type: 'event', listener, lock, revision, event: told });
      }
    }
  }

  #see(event: StoryEvent): void {
    this.#world.report(this.#check.observe(event));
  }
}

function nameOf({ name }: LockId): string {
  return Buffer.from(name).toString();
}

function isBetween(lock: string, { from, to }: Extract<LocksWatchEvent, { readonly type: 'begin' }>): boolean {
  const name = Buffer.from(lock);
  return name.compare(from) >= 0 && (to.length === 0 || name.compare(to) < 0);
}
