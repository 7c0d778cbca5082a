/**
 * One run: clients use leases, keys and locks while ranges split, merge and change leaders. Then all faults end, and
 * the run waits until all leases have ended.
 */
import { InvariantError } from '@remora/base';
import { type LockCommand, lockSpan } from '@remora/lock';
import { type Command, type CommandResult, kvRoutingKey } from '@remora/protocol';
import { leaseKey } from '../../../packages/dataserver/src/state/keys.ts';
import { put } from '../../../packages/dataserver/test/support/state-bed.ts';
import { World } from './world.ts';

export interface RunResult {
  readonly faults: readonly string[];
  /**
   * Counts keys that ends of leases deleted, notifications of ranges about an end, and keys that were put in ranges
   * other than the lease's home.
   */
  readonly taken: number;
  readonly ends: number;
  readonly apart: number;
  readonly splits: number;
  readonly merges: number;
  readonly elections: number;
  readonly lost: number;
  readonly forgotten: number;
  readonly revoked: number;
}

const CLIENTS = 4;
const ROUGH_MS = 4_000;
/** The longest TTL, plus a leader change that restarts it, plus the notification of other ranges. */
const END_MS = 12_000;
const IDS = 4n;
const KEYS = ['a', 'b', 'c', 'd', 'e', 'f'];
const LOCKS = ['a', 'c'];
const TIMEOUT_MS = 2_000;
const lockNamed = (name: string) => ({ namespace: 'n', name: Buffer.from(name) });
const PLACES: readonly Uint8Array[] = [
  leaseKey(2n),
  Buffer.from([2]),
  lockSpan(lockNamed('b')).start,
  Buffer.from([3]),
  ...['b', 'd', 'f'].map((key) => kvRoutingKey(Buffer.from(key))),
];

export function runSeed(seed: number): RunResult {
  return new Run(seed).result();
}

class Run {
  readonly #world: World;
  /** The latest incarnation that a client learned from an answer. */
  readonly #incarnations = new Map<bigint, number>();
  readonly #ids = [1n, 2n, 3n, IDS];
  #nextId = IDS + 1n;
  #revoked = 0;
  #open = 0;

  constructor(seed: number) {
    this.#world = new World(seed);
  }

  result(): RunResult {
    const world = this.#world;
    const { truth, engine } = world;
    try {
      this.#live();
    } catch (error) {
      if (!(error instanceof InvariantError)) throw error;
      truth.broken(error.message);
    }
    if (this.#open > 0) truth.refused(`${this.#open} requests are never answered`);
    truth.atTheEnd(engine, world.rangeIds);
    const { faults, taken, ends, apart } = truth;
    const { splits, merges, elections, lost, forgotten } = world;
    const figures = { splits, merges, elections, lost, forgotten: forgotten.size };
    return { faults, taken, ends, apart, ...figures, revoked: this.#revoked };
  }

  #live(): void {
    const world = this.#world;
    for (let i = 0; i < CLIENTS; i++) this.#client();
    this.#misfortune();
    world.run(ROUGH_MS);
    world.calmDown();
    world.run(END_MS);
  }

  get #rough(): boolean {
    return this.#world.clock.monotonicMs() < ROUGH_MS;
  }

  #misfortune(): void {
    const world = this.#world;
    world.later(120, () => {
      if (!this.#rough) return;
      const what = world.random.int(world.mayForget ? 7 : 6);
      if (what < 3) world.split(PLACES[world.random.int(PLACES.length)] ?? PLACES[0] ?? new Uint8Array());
      else if (what === 3) world.mergeSomewhere();
      else if (what === 6) this.#forget();
      else world.electSomewhere();
      this.#misfortune();
    });
  }

  #forget(): void {
    const id = this.#world.forgetSomewhere();
    const at = id === undefined ? -1 : this.#ids.indexOf(id);
    if (at >= 0) this.#ids[at] = this.#nextId++;
  }

  // ------------------------------------------------------------------------------------------------ clients

  #client(): void {
    this.#world.later(30, () => {
      if (this.#rough) this.#act();
    });
  }

  #act(): void {
    const { random } = this.#world;
    const id = this.#ids[random.int(this.#ids.length)] ?? 1n;
    const incarnation = this.#incarnations.get(id);
    const what = random.int(12);
    if (incarnation === undefined || what === 0) return this.#grant(id);
    if (what === 1) return this.#revoke(id, incarnation);
    const name = KEYS[random.int(KEYS.length)] ?? 'a';
    if (what === 2) return this.#send({ type: 'kv', op: { type: 'delete', key: Buffer.from(name), prevKv: false } });
    if (what < 6) return this.#send({ type: 'lock', command: this.#acquire(id, incarnation) });
    const op = put(name, 'v', { lease: random.int(8) === 0 ? 0n : id });
    if (op.type === 'put') this.#send({ type: 'kv', op });
  }

  #acquire(lease: bigint, incarnation: number): LockCommand {
    const { random } = this.#world;
    const name = LOCKS[random.int(LOCKS.length)] ?? 'a';
    return {
      ...{ type: 'acquire', lock: lockNamed(name), wait: random.int(2) === 0, waitUntilMs: 0, deadlineMs: 0 },
      ...{ owner: { session: { lease, incarnation }, token: `t${random.int(2)}` }, depthMax: 9, data: Buffer.alloc(0) },
    };
  }

  #grant(id: bigint): void {
    const ttlMs = 200 + this.#world.random.int(1_800);
    this.#send({ type: 'leaseGrant', id, ttlMs, attributes: {} }, (result) => {
      if (result?.type === 'leaseGrant') this.#incarnations.set(id, result.incarnation);
    });
  }

  #revoke(id: bigint, incarnation: number): void {
    this.#send({ type: 'leaseRevoke', id, incarnation }, (result) => {
      if (result?.type !== 'leaseRevoke') return;
      this.#revoked++;
      this.#world.truth.revoked(id, incarnation);
    });
  }

  #send(command: Command, told: (result: CommandResult | undefined) => void = () => {}): void {
    this.#open++;
    this.#world.command(command, TIMEOUT_MS, (_error, result) => {
      this.#open--;
      told(result);
      this.#client();
    });
  }
}
