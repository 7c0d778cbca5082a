/**
 * Watches, and waits for locks, of users whose rights are revoked meanwhile (rights.ts).
 *
 * LR1. The user of the client, who may do everything, writes what is watched and holds what is waited for. So events
 *      come, and locks become free, whatever rights the others have.
 * LR2. The value of a put is the time at which it began.
 */
import { ServiceError, sleep } from '@remora/base';
import type { RemoraClient } from 'remora';
import { Violation } from '../../common/violation.ts';
import type { Rights, Verdict } from '../checks/rights.ts';
import type { ClientLife } from '../sdk-client.ts';
import type { World } from '../world.ts';

/** Who asks, and for what. */
export interface Lasting {
  readonly life: ClientLife;
  readonly user: string;
  readonly remora: RemoraClient;
  readonly key: Buffer;
  readonly lock: string;
}

const PUTS_MAX = 4;
const PAUSE_MS_MAX = 1_500;
const HELD_MS_MAX = 2_500;
const WAIT_MS = 4_000;
/** RC5. Heartbeats bring a change in less than this time, and then the client hears of it. */
const ENDS_WITHIN_MS = 3_000;
const WAIT_AT_REST_MS = 20_000;
/** For a wait to reach the queue. */
const QUEUED_MS = 300;

export class LastingRights {
  readonly #world: Pick<World, 'loop'>;
  readonly #rights: Rights;
  /** Watches and waits that a revocation at rest has ended. */
  ended = 0;

  constructor(world: Pick<World, 'loop'>, rights: Rights) {
    this.#world = world;
    this.#rights = rights;
  }

  get #nowMs(): number {
    return this.#world.loop.monotonicMs();
  }

  /** RC4. A watch for a while. */
  async watch(asked: Lasting): Promise<void> {
    const { life, remora, key } = asked;
    const watch = remora.kv.watch(key);
    const followed = this.#follow(asked, watch);
    const puts = 1 + life.random.int(PUTS_MAX);
    for (let i = 0; i < puts; i++) {
      await sleep(life.clock, life.random.int(PAUSE_MS_MAX));
      await life.remora.kv.put(key, this.beginning()).catch(unlessService);
    }
    watch.close();
    await followed;
  }

  /** LR2. */
  beginning(): string {
    return String(this.#nowMs);
  }

  /** Returns how the watch ended. @throws Violation (RC4) */
  async #follow({ user }: Lasting, watch: ReturnType<RemoraClient['kv']['watch']>): Promise<Verdict> {
    try {
      for await (const { type, kv } of watch) {
        if (type === 'put') this.#rights.cameTo(user, 'an event of a put', Number(kv.value.toString()));
      }
      return 'let in';
    } catch (error) {
      return verdictOf(error);
    }
  }

  /** RC4. A wait for a lock that becomes free meanwhile. Returns how it ended. */
  async wait({ life, user, remora, lock }: Lasting): Promise<Verdict> {
    const held = await life.remora.lock(lock).tryAcquire().catch(unlessService);
    if (held === undefined) return 'neither';
    let freeFromMs: number | undefined;
    const releasing = (async () => {
      await sleep(life.clock, life.random.int(HELD_MS_MAX));
      const beganMs = this.#nowMs;
      if (held.remainingMs > 0) freeFromMs = beganMs;
      await held.release();
    })().catch(() => {
      freeFromMs = undefined; // Nobody knows since when it is free.
    });
    const ended = this.#rights.asked(user, 'a wait');
    try {
      const granted = await remora.lock(lock).acquire({ wait: WAIT_MS });
      ended('let in');
      const grantedMs = this.#nowMs;
      await releasing;
      if (freeFromMs !== undefined && freeFromMs < grantedMs) this.#rights.cameTo(user, 'a lock', freeFromMs);
      await granted.release().catch(unlessService);
      return 'let in';
    } catch (error) {
      const verdict = verdictOf(error);
      ended(verdict);
      await releasing;
      return verdict;
    }
  }

  /** RC5. Watches and waits begin; the returned function is called when a revocation was acknowledged. */
  async open(all: readonly Lasting[]): Promise<() => Promise<void>> {
    const [first] = all;
    const held = await first?.life.remora.lock(first.lock).tryAcquire().catch(unlessService);
    const open = all.map((asked) => {
      const watch = asked.remora.kv.watch(asked.key);
      const began = watch.began().catch(unlessService);
      const wait = asked.remora.lock(asked.lock).acquire({ wait: WAIT_AT_REST_MS });
      const waited = wait.then((got) => got.release()).then((): Verdict => 'let in', verdictOf);
      return { ...asked, began, ended: [this.#follow(asked, watch), ...(held === undefined ? [] : [waited])] };
    });
    await Promise.all(open.map(({ began }) => began));
    await sleep(this.#world.loop, QUEUED_MS);
    return async () => {
      await Promise.all(open.flatMap(({ user, ended }) => ended.map((each) => this.#ends(user, each))));
      await held?.release().catch(unlessService);
    };
  }

  /** @throws Violation (RC5) */
  async #ends(user: string, ended: Promise<Verdict>): Promise<void> {
    const late = sleep(this.#world.loop, ENDS_WITHIN_MS).then(() => 'late' as const);
    const how = await Promise.race([ended, late]);
    if (how === 'refused') this.ended++;
    if (how === 'refused' || how === 'neither') return;
    const text = `a watch or a wait of ${user} ${how === 'late' ? `went on for ${ENDS_WITHIN_MS} ms` : 'was served'}`;
    throw new Violation('what is revoked is refused', `${text} after its revocation`);
  }
}

export function verdictOf(error: unknown): Verdict {
  if (!(error instanceof ServiceError)) throw error;
  const isRefusal = error.code === 'PERMISSION_DENIED' || error.code === 'UNAUTHENTICATED';
  return isRefusal ? 'refused' : 'neither';
}

export function unlessService(error: unknown): undefined {
  if (!(error instanceof ServiceError)) throw error;
  return undefined;
}
