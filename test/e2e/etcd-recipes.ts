import { type Client, Metadata, type ServiceError } from '@grpc/grpc-js';
import {
  LeaseGrantRequest,
  type LeaseGrantResponse,
  LeaseRevokeRequest,
  LeaseTimeToLiveRequest,
  type LeaseTimeToLiveResponse,
  PutRequest,
  RangeRequest,
  type RangeResponse,
  type v3electionpb,
  type v3lockpb,
} from '@remora/protocol/etcd';
import type { ElectionClient, EtcdLockClient, KVClient, LeaseClient } from '@remora/protocol/grpc-clients';
import { expect } from 'vitest';
import { electionClient, kvClient, leaseClient, lockClient } from '../support/etcd-clients.ts';

/** What users of etcd's `Lock` and `Election` services count on, as functions of the address of any server of them. */
export interface RecipeScenario {
  readonly name: string;
  run(address: string): Promise<void>;
}

type Answer<Response> = (error: ServiceError | null, response: Response) => void;

/** Raw clients of one server, and the calls that the scenarios make, as promises. */
class Recipes {
  readonly election: ElectionClient;
  readonly #lock: EtcdLockClient;
  readonly #kv: KVClient;
  readonly #lease: LeaseClient;

  constructor(address: string) {
    this.election = electionClient(address);
    this.#lock = lockClient(address);
    this.#kv = kvClient(address);
    this.#lease = leaseClient(address);
  }

  close(): void {
    for (const client of [this.election, this.#lock, this.#kv, this.#lease] satisfies Client[]) client.close();
  }

  async grant(seconds: number): Promise<bigint> {
    const request = LeaseGrantRequest.fromPartial({ TTL: BigInt(seconds) });
    return (await answer<LeaseGrantResponse>((done) => this.#lease.leaseGrant(request, done))).ID;
  }

  async revoke(lease: bigint): Promise<void> {
    await answer((done) => this.#lease.leaseRevoke(LeaseRevokeRequest.fromPartial({ ID: lease }), done));
  }

  async ttl(lease: bigint): Promise<number> {
    const request = LeaseTimeToLiveRequest.fromPartial({ ID: lease });
    const { grantedTTL } = await answer<LeaseTimeToLiveResponse>((done) => this.#lease.leaseTimeToLive(request, done));
    return Number(grantedTTL);
  }

  async put(key: string, value: string): Promise<void> {
    const request = PutRequest.fromPartial({ key: Buffer.from(key), value: Buffer.from(value) });
    await answer((done) => this.#kv.put(request, done));
  }

  async keys(prefix: string): Promise<readonly { readonly key: string; readonly lease: bigint }[]> {
    const [key, rangeEnd] = [Buffer.from(`${prefix}/`), Buffer.from(`${prefix}0`)];
    const request = RangeRequest.fromPartial({ key, rangeEnd });
    const { kvs } = await answer<RangeResponse>((done) => this.#kv.range(request, done));
    return kvs.map((kv) => ({ key: kv.key.toString(), lease: kv.lease }));
  }

  async lock(name: string, lease: bigint, timeoutMs = 60_000): Promise<string> {
    const options = { deadline: Date.now() + timeoutMs };
    const request = { name: Buffer.from(name), lease };
    const { key } = await answer<v3lockpb.LockResponse>((done) =>
      this.#lock.lock(request, new Metadata(), options, done),
    );
    return key.toString();
  }

  async unlock(key: string): Promise<void> {
    await answer((done) => this.#lock.unlock({ key: Buffer.from(key) }, done));
  }

  async campaign(name: string, lease: bigint, value: string): Promise<v3electionpb.LeaderKey> {
    const request = { name: Buffer.from(name), lease, value: Buffer.from(value) };
    const { leader } = await answer<v3electionpb.CampaignResponse>((done) => this.election.campaign(request, done));
    if (leader === undefined) throw new Error('a campaign was answered without a leader');
    return leader;
  }

  async leader(name: string): Promise<string | undefined> {
    const request = { name: Buffer.from(name) };
    const { kv } = await answer<v3electionpb.LeaderResponse>((done) => this.election.leader(request, done));
    return kv?.value.toString();
  }

  async proclaim(leader: v3electionpb.LeaderKey | undefined, value: string): Promise<void> {
    await answer((done) => this.election.proclaim({ leader, value: Buffer.from(value) }, done));
  }

  async resign(leader: v3electionpb.LeaderKey | undefined): Promise<void> {
    await answer((done) => this.election.resign({ leader }, done));
  }

  /** Resolves when so many keys stand in the line. */
  async standing(name: string, count: number): Promise<void> {
    while ((await this.keys(name)).length !== count) await pause();
  }
}

function answer<Response>(call: (done: Answer<Response>) => unknown): Promise<Response> {
  return new Promise((resolve, reject) => {
    call((error, response) => (error === null ? resolve(response) : reject(error)));
  });
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 10));
}

let scenarios = 0;

function scenario(name: string, use: (recipes: Recipes, name: string) => Promise<void>): RecipeScenario {
  return {
    name,
    async run(address) {
      const recipes = new Recipes(address);
      try {
        await use(recipes, `recipe-${++scenarios}-${process.hrtime.bigint()}`);
      } finally {
        recipes.close();
      }
    },
  };
}

/** Who waits at a gateway that stops is told to go elsewhere, and nothing of it stays in the line. */
export async function leftByStop(address: string, other: string, stop: () => Promise<void>): Promise<void> {
  const [waiting, staying] = [new Recipes(address), new Recipes(other)];
  try {
    await staying.lock('l', await staying.grant(60));
    await staying.campaign('e', await staying.grant(60), 'leads');
    const refused = { code: 14 };
    const refusals = [
      expect(waiting.lock('l', await staying.grant(60))).rejects.toMatchObject(refused),
      expect(waiting.campaign('e', await staying.grant(60), 'waits')).rejects.toMatchObject(refused),
    ];
    await Promise.all([staying.standing('l', 2), staying.standing('e', 2)]);
    await Promise.all([...refusals, stop()]);
    expect([(await staying.keys('l')).length, (await staying.keys('e')).length]).toEqual([1, 1]);
  } finally {
    for (const recipes of [waiting, staying]) recipes.close();
  }
}

const NO_LEASE = 0n;
const UNKNOWN_LEASE = 0x7123_4567n;

export const recipeScenarios: readonly RecipeScenario[] = [
  scenario('a lock is a key under its name, which lives as long as the lease', async (recipes, name) => {
    const lease = await recipes.grant(60);
    const key = await recipes.lock(name, lease);
    expect(key).toBe(`${name}/${lease.toString(16)}`);
    expect(await recipes.keys(name)).toEqual([{ key, lease }]);
    await recipes.revoke(lease);
    expect(await recipes.keys(name)).toEqual([]);
  }),

  scenario('locks are granted in the order in which they were asked for', async (recipes, name) => {
    const first = await recipes.lock(name, await recipes.grant(60));
    const granted: number[] = [];
    const turns: Promise<void>[] = [];
    for (const turn of [1, 2, 3, 4]) {
      const lease = await recipes.grant(60);
      turns.push(
        recipes.lock(name, lease).then(async (key) => {
          granted.push(turn);
          await recipes.unlock(key);
        }),
      );
      await recipes.standing(name, turn + 1);
    }
    expect(granted).toEqual([]);
    await recipes.unlock(first);
    await Promise.all(turns);
    expect(granted).toEqual([1, 2, 3, 4]);
    expect(await recipes.keys(name)).toEqual([]);
  }),

  scenario('who asks again by the lease that has the lock has it', async (recipes, name) => {
    const lease = await recipes.grant(60);
    const key = await recipes.lock(name, lease);
    expect(await recipes.lock(name, lease)).toBe(key);
    expect(await recipes.keys(name)).toHaveLength(1);
  }),

  scenario('a lock without a lease gets one of a minute', async (recipes, name) => {
    const key = await recipes.lock(name, NO_LEASE);
    const [held] = await recipes.keys(name);
    expect(held?.key).toBe(key);
    expect(await recipes.ttl(held?.lease ?? 0n)).toBe(60);
  }),

  scenario('who gives up leaves nothing in the line, and is not granted later', async (recipes, name) => {
    const key = await recipes.lock(name, await recipes.grant(60));
    await expect(recipes.lock(name, await recipes.grant(60), 300)).rejects.toMatchObject({ code: 4 });
    await recipes.standing(name, 1);
    await recipes.unlock(key);
    expect(await recipes.keys(name)).toEqual([]);
  }),

  scenario('the lock goes on when the lease of its holder ends', async (recipes, name) => {
    const [holder, waiter] = [await recipes.grant(60), await recipes.grant(60)];
    await recipes.lock(name, holder);
    const turn = recipes.lock(name, waiter);
    await recipes.standing(name, 2);
    await recipes.revoke(holder);
    expect(await turn).toBe(`${name}/${waiter.toString(16)}`);
  }),

  scenario('a waiter whose lease ends is told so, and those behind it do not wait for it', async (recipes, name) => {
    const [holder, ending, last] = [await recipes.grant(60), await recipes.grant(60), await recipes.grant(60)];
    const key = await recipes.lock(name, holder);
    const refused = expect(recipes.lock(name, ending)).rejects.toMatchObject({ details: 'mutex: session is expired' });
    await recipes.standing(name, 2);
    const turn = recipes.lock(name, last);
    await recipes.standing(name, 3);
    await recipes.revoke(ending);
    await recipes.unlock(key);
    await refused;
    expect(await turn).toBe(`${name}/${last.toString(16)}`);
  }),

  scenario(
    'a lease that is not there is refused, and unlocking what is not locked does nothing',
    async (recipes, name) => {
      // UNKNOWN, as in etcd: its services use its own client, whose errors have no status.
      const refused = { code: 2, details: 'etcdserver: requested lease not found' };
      await expect(recipes.lock(name, UNKNOWN_LEASE)).rejects.toMatchObject(refused);
      await recipes.unlock(`${name}/nothing`);
      expect(await recipes.keys(name)).toEqual([]);
    },
  ),

  scenario('keys that others put under the name stand in the same line', async (recipes, name) => {
    await recipes.put(`${name}/by-hand`, '');
    const lease = await recipes.grant(60);
    const turn = recipes.lock(name, lease);
    await recipes.standing(name, 2);
    await recipes.unlock(`${name}/by-hand`);
    expect(await turn).toBe(`${name}/${lease.toString(16)}`);
  }),

  scenario('a leader is elected, proclaims, resigns, and the next one leads', async (recipes, name) => {
    await expect(recipes.leader(name)).rejects.toMatchObject({ code: 2, details: 'election: no leader' });
    const [one, two] = [await recipes.grant(60), await recipes.grant(60)];
    const first = await recipes.campaign(name, one, 'one');
    expect(first.key.toString()).toBe(`${name}/${one.toString(16)}`);
    const next = recipes.campaign(name, two, 'two');
    await recipes.standing(name, 2);
    await recipes.proclaim(first, 'one, still');
    expect(await recipes.leader(name)).toBe('one, still');
    await recipes.resign(first);
    const second = await next;
    expect(second.lease).toBe(two);
    expect(await recipes.leader(name)).toBe('two');
    await expect(recipes.proclaim(first, 'late')).rejects.toMatchObject({ code: 2, details: 'election: not leader' });
    await recipes.resign(first);
    expect(await recipes.leader(name)).toBe('two');
  }),

  scenario('a leader that proclaims without naming its lease goes with it all the same', async (recipes, name) => {
    const lease = await recipes.grant(60);
    const leader = await recipes.campaign(name, lease, 'one');
    await recipes.proclaim({ ...leader, lease: NO_LEASE }, 'one, still');
    expect(await recipes.leader(name)).toBe('one, still');
    await recipes.revoke(lease);
    expect(await recipes.keys(name)).toEqual([]);
  }),

  scenario('campaigns that name no lease have one each, and lead one after the other', async (recipes, name) => {
    const first = await recipes.campaign(name, NO_LEASE, 'one');
    expect([await recipes.ttl(first.lease), await recipes.leader(name)]).toEqual([60, 'one']);
    const next = recipes.campaign(name, NO_LEASE, 'two');
    await recipes.standing(name, 2);
    expect(await recipes.leader(name)).toBe('one');
    await recipes.resign(first);
    expect((await next).lease).not.toBe(first.lease);
    expect(await recipes.leader(name)).toBe('two');
  }),

  scenario('a campaign is gone on with by its lease, with another value', async (recipes, name) => {
    const lease = await recipes.grant(60);
    const before = await recipes.campaign(name, lease, 'before');
    const after = await recipes.campaign(name, lease, 'after');
    expect([after.key, after.rev]).toEqual([before.key, before.rev]);
    expect(await recipes.leader(name)).toBe('after');
  }),

  scenario('proclaiming and resigning without saying as whom is refused', async (recipes) => {
    const missing = { code: 2, details: '"leader" field must be provided' };
    await expect(recipes.proclaim(undefined, 'x')).rejects.toMatchObject(missing);
    await expect(recipes.resign(undefined)).rejects.toMatchObject(missing);
  }),

  scenario('who gave up takes nothing from who joined again by the same lease', async (recipes, name) => {
    const holder = await recipes.lock(name, await recipes.grant(60));
    const lease = await recipes.grant(60);
    const broken = expect(recipes.lock(name, lease, 300)).rejects.toMatchObject({ code: 4 });
    await recipes.standing(name, 2);
    const again = recipes.lock(name, lease);
    await broken;
    await recipes.unlock(holder);
    const key = await again;
    // A call that was given up before it came to an end would have deleted it by then.
    await recipes.put(`${name}/later`, 'x');
    expect((await recipes.keys(name)).map((each) => each.key)).toContain(key);
  }),

  scenario('what is too large is refused, and leaves nothing behind', async (recipes, name) => {
    const tooLarge = { code: 3, details: 'etcdserver: request is too large' };
    const large = 'x'.repeat(2 ** 21);
    await expect(recipes.campaign(name, await recipes.grant(60), large)).rejects.toMatchObject(tooLarge);
    expect(await recipes.keys(name)).toEqual([]);
    await expect(recipes.lock(large, NO_LEASE)).rejects.toMatchObject(tooLarge);
    const leader = await recipes.campaign(name, await recipes.grant(60), 'small');
    await expect(recipes.proclaim(leader, large)).rejects.toMatchObject(tooLarge);
    expect(await recipes.leader(name)).toBe('small');
    await expect(recipes.leader(large)).rejects.toMatchObject(tooLarge);
  }),

  scenario('who observes is told each leader and all that it proclaims', async (recipes, name) => {
    await observing(recipes, name, async (seen, told) => {
      const first = await recipes.campaign(name, await recipes.grant(60), 'one');
      await told(1);
      await recipes.proclaim(first, 'one again');
      const next = recipes.campaign(name, await recipes.grant(60), 'two');
      await recipes.standing(name, 2);
      await told(2);
      await recipes.resign(first);
      const second = await next;
      await told(3); // who looks for the new leader late is told only what it says then
      await recipes.proclaim(second, 'two again');
      await told(4);
      expect(seen).toEqual(['one', 'one again', 'two', 'two again']);
    });
  }),

  scenario(
    'who observes is told once of a leader that goes on with its campaign by another value',
    async (recipes, name) => {
      await observing(recipes, name, async (seen, told) => {
        const lease = await recipes.grant(60);
        await recipes.campaign(name, lease, 'before');
        await told(1);
        const leader = await recipes.campaign(name, lease, 'after');
        await told(2);
        await recipes.proclaim(leader, 'last');
        await told(3);
        expect(seen).toEqual(['before', 'after', 'last']);
      });
    },
  ),
];

/** `told` resolves when so many values of leaders were told. */
async function observing(
  recipes: Recipes,
  name: string,
  what: (seen: readonly string[], told: (count: number) => Promise<void>) => Promise<void>,
): Promise<void> {
  const seen: string[] = [];
  const observed = recipes.election.observe({ name: Buffer.from(name) });
  observed.on('data', ({ kv }: v3electionpb.LeaderResponse) => seen.push(kv?.value.toString() ?? ''));
  observed.on('error', () => {});
  try {
    await what(seen, async (count) => {
      while (seen.length < count) await pause();
    });
  } finally {
    observed.cancel();
  }
}
