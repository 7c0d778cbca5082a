/**
 * Locks under contention, and a resource that takes writes only under the newest fencing version (design §15).
 *
 * A holder relies on its lock as long as the SDK says that it may: when another is granted the lock, whoever held it
 * before must know by its own clock that it does not any more.
 */
import { ServiceError, sleep } from '@remora/base';
import type { HeldLock } from 'remora';
import { LockCheck, type LockEvent } from '../../../checkers/index.ts';
import type { ClientLife } from '../sdk-client.ts';
import type { World } from '../world.ts';
import type { MakeWorkload, Workload } from './workload.ts';

const LOCKS = 2;
const WAIT_MS_MAX = 6_000;

interface Use {
  readonly owner: string;
  readonly lock: string;
  readonly life: ClientLife;
  held?: HeldLock;
}

export const locks: MakeWorkload = (world) => new LockLoad(world);

class LockLoad implements Workload {
  readonly name = 'locks';
  readonly #world: World;
  readonly #check = new LockCheck();
  /** Acquires that were asked for, and those that were granted, until they are over. */
  readonly #uses = new Set<Use>();
  /** The newest version under which each lock's resource was written. */
  readonly #written = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
  }

  async run(life: ClientLife): Promise<void> {
    const { random, clock } = life;
    for (let n = 0; !this.#world.resting; n++) {
      await sleep(clock, random.int(4 * this.#world.options.thinkMs));
      const use: Use = { owner: `${life.name}:${n}`, lock: `L${random.int(LOCKS)}`, life };
      const held = await this.#acquire(use);
      if (held !== undefined) await this.#hold(use, held);
    }
  }

  /** Whoever is gone neither waits nor relies on anything. */
  ended(life: ClientLife): void {
    for (const use of [...this.#uses]) if (use.life === life) this.#over(use);
  }

  check(): void {
    this.#world.report(this.#check.finish());
  }

  async #acquire(use: Use): Promise<HeldLock | undefined> {
    const { life, lock, owner } = use;
    const { random, remora } = life;
    this.#uses.add(use);
    this.#see({ type: 'asked', lock, owner, mode: 'exclusive' });
    const end = this.#world.operation(life, 'acquire');
    try {
      const held =
        random.int(3) === 0
          ? await remora.lock(lock).tryAcquire()
          : await remora.lock(lock).acquire({ wait: random.int(WAIT_MS_MAX) });
      end('done', held === undefined ? 'busy' : String(held.version));
      if (held?.state === 'active') return this.#granted(use, held);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      end(error.code === 'LOCK_TIMEOUT' ? 'done' : 'refused', error.code);
    }
    this.#over(use);
    return undefined;
  }

  #granted(use: Use, held: HeldLock): HeldLock {
    const { lock, owner } = use;
    for (const other of [...this.#uses]) if (other.held !== undefined && !relies(other.held)) this.#over(other);
    use.held = held;
    this.#see({ type: 'granted', lock, owner, mode: 'exclusive', version: held.version });
    return held;
  }

  /** Works under the lock for a while, and gives it back. */
  async #hold(use: Use, held: HeldLock): Promise<void> {
    const { random, clock } = use.life;
    for (let writes = random.int(4); writes > 0 && held.state === 'active'; writes--) {
      this.#write(use, held.version);
      await sleep(clock, random.int(this.#world.options.thinkMs));
    }
    this.#over(use);
    const end = this.#world.operation(use.life, 'release');
    try {
      await held.release();
      end('done');
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      end(error.code === 'UNKNOWN_OUTCOME' ? 'unknown' : 'refused', error.code);
    }
  }

  /** On its way to the resource a write may be overtaken by those of a later holder. */
  #write({ owner, lock, life }: Use, version: number): void {
    this.#world.loop.setTimer(life.random.int(50), () => {
      if (version < (this.#written.get(lock) ?? 0)) return;
      this.#written.set(lock, version);
      this.#see({ type: 'accepted', lock, owner, version });
    });
  }

  #over(use: Use): void {
    if (!this.#uses.delete(use)) return;
    const { lock, owner } = use;
    this.#see({ type: use.held === undefined ? 'gone' : 'left', lock, owner });
  }

  #see(event: LockEvent): void {
    this.#world.report(this.#check.observe(event));
  }
}

/** Whether its client, were it to look now, would rely on the lock; to ask changes nothing. */
function relies(held: HeldLock): boolean {
  return held.remainingMs > 0;
}
