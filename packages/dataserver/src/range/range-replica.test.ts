import { type Command, encodeEntry, type RangeReply } from '@remora/protocol';
import { expect, test } from 'vitest';
import { CrashWorld } from '../install/test-crash-world.ts';
import { DESCRIPTOR, range } from '../state/test-bed.ts';
import { boot, replicaOf } from '../test-store.ts';

const RANGE = {
  ...DESCRIPTOR,
  replicas: [1, 2, 3].map((id) => ({ replicaId: 10 + id, nodeId: id, type: 'voter' as const })),
};

test('only a leader that serves tells the time of its range; others answer without one', async () => {
  const { store } = await boot(new CrashWorld(1));
  await store.createReplica(RANGE, 11);
  const replica = replicaOf({ store });
  const told = (): number => {
    let reply: RangeReply | undefined;
    const body = { kind: 'query', query: { type: 'range', op: range('a'), serializable: true } } as const;
    const request = { rangeId: RANGE.rangeId, epoch: RANGE.epoch, requestId: '', deadlineMs: 0, body };
    replica.execute(
      request,
      () => {},
      (_error, answer) => {
        reply = answer;
      },
    );
    if (reply === undefined) throw new Error('it is answered at once');
    return reply.rangeTimeMs;
  };
  expect(told()).toBe(0);
  replica.roleChanged({ role: 'leader', term: 2, leader: 11 });
  expect(told()).toBe(0);
  const batch = { rangeTimeMs: 50_000, wallMs: 0, epoch: RANGE.epoch, commands: [] };
  await replica.apply([{ index: 1, term: 2, type: 'normal', data: encodeEntry(batch) }], replica.state.conf);
  expect(told()).toBeGreaterThanOrEqual(50_000);
  replica.roleChanged({ role: 'follower', term: 3, leader: 12 });
  expect(told()).toBe(0);
});

test('who is in the queue waits for its turn without a round of reads; who is not there is told so after one (Q5)', async () => {
  const { store } = await boot(new CrashWorld(1));
  await store.createReplica(RANGE, 11);
  const replica = replicaOf({ store });
  const lock = { namespace: 'n', name: Buffer.from('l') };
  const owner = (token: string) => ({ session: { lease: 7n, incarnation: 2 }, token });
  const commands: readonly Command[] = [
    { type: 'leaseGrant', id: 7n, ttlMs: 60_000, attributes: {} },
    ...['holds', 'waits'].map((token): Command => {
      const times = { waitUntilMs: 0, deadlineMs: 0 };
      const command = {
        type: 'acquire',
        lock,
        owner: owner(token),
        wait: true,
        depthMax: 1,
        data: Buffer.alloc(0),
      } as const;
      return { type: 'lock', command: { ...command, ...times } };
    }),
    { type: 'lock', command: { type: 'release', lock, owner: owner('holds'), all: true, deadlineMs: 0 } },
  ];
  const apply = (index: number, command: Command): void | Promise<void> => {
    const batched = [{ requestId: '', deadlineMs: 0, command }];
    const data = encodeEntry({ rangeTimeMs: 1, wallMs: 0, epoch: RANGE.epoch, commands: batched });
    return replica.apply([{ index, term: 2, type: 'normal', data }], replica.state.conf);
  };
  let rounds = 0;
  Object.assign(replica.group, { readIndex: () => rounds++ });
  const told: string[] = [];
  const ask = (token: string): void => {
    const body = { kind: 'query', query: { type: 'lockAwait', lock, owner: owner(token) } } as const;
    replica.execute(
      { rangeId: RANGE.rangeId, epoch: RANGE.epoch, requestId: '', deadlineMs: 0, body },
      () => {},
      (error, reply) => {
        const result = reply?.result.type === 'lockAwait' ? reply.result.result.type : undefined;
        told.push(`${token} ${error?.code ?? result}`);
      },
    );
  };
  replica.roleChanged({ role: 'leader', term: 2, leader: 11 });
  ask('waits');
  expect(rounds).toBe(1); // nothing of this term is applied: it may be behind
  for (const [i, command] of commands.slice(0, 3).entries()) await apply(i + 1, command);
  ask('waits');
  expect(rounds).toBe(1);
  for (const token of ['holds', 'nobody']) ask(token);
  expect(rounds).toBe(3);
  expect(told).toEqual([]);
  await apply(4, commands[3] ?? expect.fail());
  expect(told).toEqual(['waits granted']);
  store.stop();
});
