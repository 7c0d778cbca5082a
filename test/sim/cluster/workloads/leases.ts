/**
 * Leases with keys: renewed for a while, then revoked or left to themselves. A lease lives as long as keep-alives are
 * acknowledged and a TTL longer, ends soon after, and takes its keys with it (design §9).
 */
import { ServiceError, sleep } from '@remora/base';
import { LeaseCheck, type LeaseEvent } from '../../../checkers/index.ts';
import { type ClientLife, lifeOf } from '../sdk-client.ts';
import type { World } from '../world.ts';
import type { MakeWorkload, Workload } from './workload.ts';

const TTL_MS_MIN = 1_000;
const TTL_MS_SPREAD = 3_000;
/** How long the end of a lease may take in a healthy cluster. */
const ENDS_WITHIN_MS = 3_000;
/** Clocks are compared with the world's. */
const DRIFT_PER_MILLE = 60;
/** How the keys begin. */
export const LEASED = 'l';

export const leases: MakeWorkload = (world) => new LeaseLoad(world);

class LeaseLoad implements Workload {
  readonly name = 'leases';
  readonly #world: World;
  readonly #check = new LeaseCheck({ driftPerMille: DRIFT_PER_MILLE, endsWithinMs: ENDS_WITHIN_MS });
  readonly #known = new Set<bigint>();

  constructor(world: World) {
    this.#world = world;
  }

  async run(life: ClientLife): Promise<void> {
    const { random, clock } = life;
    for (let n = 0; !this.#world.resting; n++) {
      await sleep(clock, random.int(10 * this.#world.options.thinkMs));
      const lease = await this.#grant(life);
      if (lease !== undefined) await this.#live(life, lease, n);
    }
  }

  /** L4, L5: when all had time to end, none is left, and no key of theirs. */
  async check(): Promise<void> {
    const { loop } = this.#world;
    const { remora, clock } = lifeOf(this.#world.clientAt(0));
    await sleep(clock, (TTL_MS_MIN + TTL_MS_SPREAD) * 1.2 + 2 * ENDS_WITHIN_MS);
    const left = new Set(await remora.lease.list());
    const keys = new Set((await remora.kv.range({ prefix: LEASED })).kvs.map(({ key }) => key.toString()));
    for (const id of this.#known)
      if (!left.has(id)) this.#see({ type: 'ended', lease: String(id), atMs: loop.monotonicMs() });
    for (const key of this.#keys) if (!keys.has(key)) this.#see({ type: 'deleted', key });
    this.#see({ type: 'settled', atMs: loop.monotonicMs() });
  }

  readonly #keys = new Set<string>();

  async #grant(life: ClientLife): Promise<bigint | undefined> {
    const sentMs = this.#world.loop.monotonicMs();
    const ttl = TTL_MS_MIN + life.random.int(TTL_MS_SPREAD);
    const granted = await this.#try(life, 'grant', () => life.remora.lease.grant(ttl));
    if (granted === undefined) return undefined;
    this.#known.add(granted.id);
    this.#see({ type: 'granted', lease: String(granted.id), ttlMs: granted.ttlMs, sentMs });
    return granted.id;
  }

  async #live(life: ClientLife, id: bigint, n: number): Promise<void> {
    const { random, clock, remora } = life;
    const lease = String(id);
    for (let rounds = random.int(6); rounds > 0; rounds--) {
      if (random.int(2) === 0) await this.#put(life, id, `${LEASED}${life.name}:${n}:${rounds}`);
      await sleep(clock, random.int(TTL_MS_MIN));
      const sentMs = this.#world.loop.monotonicMs();
      this.#see({ type: 'tried', lease, sentMs });
      const ttl = await this.#try(life, 'keepAlive', () => remora.lease.keepAlive(id), lease);
      if (ttl !== undefined) this.#see({ type: 'renewed', lease, sentMs });
    }
    if (random.int(2) === 0) return;
    this.#see({ type: 'revoked', lease, atMs: this.#world.loop.monotonicMs() });
    const revoked = await this.#try(
      life,
      'revoke',
      async () => {
        await remora.lease.revoke(id);
        return true;
      },
      lease,
    );
    if (revoked === true) this.#see({ type: 'ended', lease, atMs: this.#world.loop.monotonicMs() });
  }

  async #put(life: ClientLife, id: bigint, key: string): Promise<void> {
    this.#keys.add(key);
    const put = await this.#try(life, 'leasePut', () => life.remora.kv.put(key, 'x', { lease: id }));
    if (put !== undefined) this.#see({ type: 'put', key, lease: String(id) });
  }

  /** The answer, if there is one. `lease`: what an answer that there is no such lease says. */
  async #try<T>(life: ClientLife, what: string, ask: () => Promise<T>, lease?: string): Promise<T | undefined> {
    const end = this.#world.operation(life, what);
    try {
      const answer = await ask();
      end('done');
      return answer;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      const gone = error.code === 'LEASE_NOT_FOUND';
      end(gone ? 'done' : error.code === 'UNKNOWN_OUTCOME' ? 'unknown' : 'refused', error.code);
      if (gone && lease !== undefined) this.#see({ type: 'ended', lease, atMs: this.#world.loop.monotonicMs() });
      return undefined;
    }
  }

  #see(event: LeaseEvent): void {
    this.#world.report(this.#check.observe(event));
  }
}
