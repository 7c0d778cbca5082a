/** The same locks from the command line, and etcd's own lock and election services. */

import type { ServiceError } from '@grpc/grpc-js';
import { LeaseGrantRequest, type LeaseGrantResponse, type v3electionpb, type v3lockpb } from '@remora/protocol/etcd';
import type { ElectionClient, EtcdLockClient, LeaseClient } from '@remora/protocol/grpc-clients';
import { expect } from 'vitest';
import { electionClient, leaseClient, lockClient } from '../../support/etcd-clients.ts';
import { Run } from '../command.ts';
import { eventually, FinalError } from '../eventually.ts';
import { type Courses, shown, WHILE, type World, waiters } from './course.ts';

const LEASE_SECONDS = 60n;

export const WAYS: Courses = {
  async *'a command runs under a lock'(world) {
    const { client, endpoints, name } = world;
    const held = await client.lock(name).acquire();
    yield 'held';
    const command = ['sh', '-c', 'echo $REMORA_LOCK_VERSION; exit 7'];
    const waiting = new Run(endpoints, ['lock', 'run', name, '--', ...command], {});
    await waiters(world, name, 1);
    yield 'waiting';
    await held.release();
    const { code, out } = await waiting.ended;
    expect(code).toBe(7);
    expect(Number(out)).toBeGreaterThan(held.version);
    expect(await shown(world, name)).toBeUndefined();
  },

  async *"etcd's lock service: who comes first has it, and who asks again by its lease keeps its place"(world) {
    const { name } = world;
    const [holder, waiter] = [await grant(world), await grant(world)];
    const lock = (lease: bigint) =>
      anywhere<EtcdLockClient, v3lockpb.LockResponse>(world, lockClient, (at, done) =>
        at.lock({ name: Buffer.from(name), lease }, done),
      );
    const unlock = (key: Buffer) =>
      anywhere<EtcdLockClient, unknown>(world, lockClient, (at, done) => at.unlock({ key }, done));
    const { key } = await lock(holder);
    yield 'held';
    expect((await lock(holder)).key).toEqual(key);
    let granted = false;
    const waiting = lock(waiter).then((answer) => {
      granted = true;
      return answer;
    });
    await eventually('both stand in the line', async () => {
      return (await world.client.kv.range({ prefix: `${name}/` })).count === 2;
    });
    yield 'waiting';
    expect(granted).toBe(false);
    await unlock(key);
    await unlock((await waiting).key);
  },

  async *"etcd's election service: a leader proclaims, is seen, and resigns to the next candidate"(world) {
    const name = Buffer.from(world.name);
    const campaign = (lease: bigint, value: string) =>
      anywhere<ElectionClient, v3electionpb.CampaignResponse>(world, electionClient, (at, done) =>
        at.campaign({ name, lease, value: Buffer.from(value) }, done),
      );
    const leading = async (): Promise<string | undefined> => {
      const { kv } = await anywhere<ElectionClient, v3electionpb.LeaderResponse>(world, electionClient, (at, done) =>
        at.leader({ name }, done),
      );
      return kv?.value.toString();
    };
    const { leader } = await campaign(await grant(world), 'first');
    yield 'held';
    await anywhere<ElectionClient, unknown>(world, electionClient, (at, done) =>
      at.proclaim({ leader, value: Buffer.from('proclaimed') }, done),
    );
    expect(await leading()).toBe('proclaimed');
    const next = campaign(await grant(world), 'second');
    await eventually('both stand in the line', async () => {
      return (await world.client.kv.range({ prefix: `${world.name}/` })).count === 2;
    });
    yield 'waiting';
    expect(await leading()).toBe('proclaimed');
    await anywhere<ElectionClient, unknown>(world, electionClient, (at, done) => at.resign({ leader }, done));
    await next;
    expect(await leading()).toBe('second');
  },

  async *'grants, waits, holds and sessions are counted'(world) {
    const { client, other, name } = world;
    const held = await client.lock(name).acquire();
    yield 'held';
    const waiting = other.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'waiting';
    await held.release();
    await (await waiting).release();
    const counted = [
      /^remora_lock_grants_total\{.*kind="exclusive".*waited="yes".*\} [1-9]/m,
      /^remora_lock_ends_total\{.*how="released".*\} [1-9]/m,
      /^remora_lock_wait_seconds_count\{.*\} [1-9]/m,
      /^remora_lock_hold_seconds_count\{.*\} [1-9]/m,
    ];
    await eventually('a node tells of them', async () => {
      const texts = await Promise.all(world.http.map(async (at) => (await fetch(`http://${at}/metrics`)).text()));
      return texts.some((text) => counted.every((line) => line.test(text)));
    });
  },
};

const UNAVAILABLE = 14;
/** Tries one node after the other while nodes are not reachable. */
function anywhere<At extends { close(): void }, Reply>(
  { endpoints }: World,
  open: (address: string) => At,
  call: (at: At, done: (error: ServiceError | null, reply: Reply) => void) => unknown,
): Promise<Reply> {
  let turn = 0;
  return eventually(
    'an answer',
    async () => {
      const at = open(endpoints[turn++ % endpoints.length] ?? '');
      try {
        return await new Promise<Reply>((resolve, reject) => {
          call(at, (error, reply) => (error === null ? resolve(reply) : reject(error)));
        });
      } catch (error) {
        if ((error as ServiceError).code === UNAVAILABLE) throw error;
        throw new FinalError(String(error));
      } finally {
        at.close();
      }
    },
    WHILE,
  );
}

async function grant(world: World): Promise<bigint> {
  const request = LeaseGrantRequest.fromPartial({ TTL: LEASE_SECONDS });
  const { ID } = await anywhere<LeaseClient, LeaseGrantResponse>(world, leaseClient, (at, done) =>
    at.leaseGrant(request, done),
  );
  return ID;
}
