import { encodeEntry, type RangeReply } from '@remora/protocol';
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
