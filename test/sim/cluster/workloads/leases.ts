/**
 * Leases with keys: renewed for a while, then revoked or left to expire. A lease lives as long as keep-alives are
 * acknowledged and a TTL longer, ends soon after, and its keys are deleted with it (design §9).
 *
 * K1. Only the lease deletes its keys: if a read does not find a key whose put was acknowledged, the lease has ended.
 * K2. A put that races with the end of its lease fails, or its key is deleted; the same holds for a put of unknown
 *     outcome.
 */
import { ROOT } from '@remora/auth';
import { sleep } from '@remora/base';
import { LeaseCheck, type LeaseEvent } from '../../../checkers/index.ts';
import { type ClientLife, lifeOf } from '../sdk-client.ts';
import { credentialsOf } from '../users.ts';
import type { World } from '../world.ts';
import { type Answer, ask, think, withHands } from './ask.ts';
import type { MakeWorkload, Workload } from './workload.ts';

const TTL_MS_MIN = 1_000;
const TTL_MS_SPREAD = 3_000;
/** How long the end of a lease may take in a healthy cluster. */
const ENDS_WITHIN_MS = 3_000;
/** Clocks are compared with the world's. */
const DRIFT_PER_MILLE = 60;
const ROUNDS_MAX = 8;
/** The prefix of the keys. */
export const LEASED = 'l';
/** How much less often than others this workload begins something. */
const SELDOM = 4;

interface Held {
  readonly life: ClientLife;
  readonly id: bigint;
  /** The name of the lease in the check. */
  readonly lease: string;
  /** Keys whose put was acknowledged. */
  readonly keys: string[];
  readonly electionsBefore: number;
}

export const leases: MakeWorkload = (world) => new LeaseLoad(world);

class LeaseLoad implements Workload {
  readonly name = 'leases';
  readonly #world: World;
  readonly #check = new LeaseCheck({ driftPerMille: DRIFT_PER_MILLE, endsWithinMs: ENDS_WITHIN_MS });
  readonly #known = new Set<bigint>();
  /** All keys that may have been put. */
  readonly #keys = new Set<string>();
  #renewedAtNewLeader = 0;
  #putsRefused = 0;

  constructor(world: World) {
    this.#world = world;
  }

  run(life: ClientLife): Promise<void> {
    return withHands(this.#world, this.#world.options.hands, async () => {
      await think(this.#world, life, SELDOM);
      const held = await this.#grant(life);
      if (held !== undefined) await this.#live(held);
    });
  }

  /** L4, L5: after all had time to end, no lease is left, and none of their keys. */
  async check(): Promise<void> {
    const life = lifeOf(this.#world.clientAt(0));
    const { remora, clock } = life;
    await sleep(clock, (TTL_MS_MIN + TTL_MS_SPREAD) * 1.2 + 2 * ENDS_WITHIN_MS);
    const left = new Set(await this.#leasesOfAll(life));
    const keys = new Set((await remora.kv.range({ prefix: LEASED })).kvs.map(({ key }) => key.toString()));
    for (const id of this.#known) if (!left.has(id)) this.#ended(String(id));
    for (const key of this.#keys) if (!keys.has(key)) this.#see({ type: 'deleted', key });
    this.#see({ type: 'settled', atMs: this.#nowMs() });
  }

  /** With authentication, only root may list them. */
  async #leasesOfAll({ remora, connect }: ClientLife): Promise<readonly bigint[]> {
    if (!this.#world.options.authenticated) return remora.lease.list().toArray();
    const root = await connect(credentialsOf(ROOT));
    const ids = await root.lease.list().toArray();
    await root.close();
    return ids;
  }

  figures(): Readonly<Record<string, number>> {
    return { 'renewed over an election': this.#renewedAtNewLeader, 'puts too late for a lease': this.#putsRefused };
  }

  async #grant(life: ClientLife): Promise<Held | undefined> {
    const sentMs = this.#nowMs();
    const ttl = TTL_MS_MIN + life.random.int(TTL_MS_SPREAD);
    const asked = await ask({ world: this.#world, life, what: 'grant' }, () => life.remora.lease.grant(ttl));
    if (asked.type !== 'answer') return undefined;
    const { id, ttlMs } = asked.value;
    const lease = String(id);
    this.#known.add(id);
    this.#see({ type: 'granted', lease, ttlMs, sentMs });
    return { life, id, lease, keys: [], electionsBefore: this.#world.elections };
  }

  async #live(held: Held): Promise<void> {
    const { random, clock } = held.life;
    for (let rounds = random.int(ROUNDS_MAX); rounds > 0; rounds--) {
      const kind = random.int(4);
      if (kind < 2) await this.#put(held);
      else if (kind === 2) await this.#look(held);
      await sleep(clock, random.int(TTL_MS_MIN));
      await this.#renew(held);
    }
    if (random.int(2) === 0) return;
    // K2.
    const racing = random.int(2) === 0 ? this.#put(held) : undefined;
    await Promise.all([racing, this.#revoke(held)]);
    if (random.int(4) === 0) await this.#renew(held);
  }

  async #put({ life, id, lease, keys }: Held): Promise<void> {
    const key = `${LEASED}${this.#keys.size}`;
    this.#keys.add(key);
    const value = life.name;
    const put = await this.#ask(life, 'leased put', lease, () =>
      this.#world.revisions.written(() => life.remora.kv.put(key, value, { lease: id })),
    );
    if (put.type === 'refused') {
      if (put.code === 'LEASE_NOT_FOUND') this.#putsRefused++;
      return;
    }
    this.#see({ type: 'put', key, lease });
    if (put.type !== 'answer') return;
    keys.push(key);
    this.#world.changed({ revision: put.value.revision, key, kind: 'put', value });
  }

  /** K1. */
  async #look({ life, lease, keys }: Held): Promise<void> {
    const key = keys[life.random.int(Math.max(1, keys.length))];
    if (key === undefined) return;
    const asked = await ask({ world: this.#world, life, what: 'get' }, () =>
      this.#world.revisions.current(() => life.remora.kv.range(key)),
    );
    if (asked.type === 'answer' && asked.value.kvs.length === 0) this.#ended(lease);
  }

  async #renew({ life, id, lease, electionsBefore }: Held): Promise<void> {
    const sentMs = this.#nowMs();
    this.#see({ type: 'tried', lease, sentMs });
    const renewed = await this.#ask(life, 'keepAlive', lease, () => life.remora.lease.keepAlive(id));
    if (renewed.type !== 'answer') return;
    this.#see({ type: 'renewed', lease, sentMs });
    if (this.#world.elections > electionsBefore) this.#renewedAtNewLeader++;
  }

  async #revoke({ life, id, lease }: Held): Promise<void> {
    this.#see({ type: 'revoked', lease, atMs: this.#nowMs() });
    const revoked = await this.#ask(life, 'revoke', lease, () => life.remora.lease.revoke(id));
    if (revoked.type === 'answer') this.#ended(lease);
  }

  /** Sends a request about a lease: an answer that there is none means that it has ended. */
  async #ask<T>(life: ClientLife, what: string, lease: string, question: () => Promise<T>): Promise<Answer<T>> {
    const asked = await ask({ world: this.#world, life, what }, question, ['LEASE_NOT_FOUND']);
    if (asked.type === 'refused' && asked.code === 'LEASE_NOT_FOUND') this.#ended(lease);
    return asked;
  }

  #ended(lease: string): void {
    this.#see({ type: 'ended', lease, atMs: this.#nowMs() });
  }

  #nowMs(): number {
    return this.#world.loop.monotonicMs();
  }

  #see(event: LeaseEvent): void {
    this.#world.report(this.#check.observe(event));
  }
}
