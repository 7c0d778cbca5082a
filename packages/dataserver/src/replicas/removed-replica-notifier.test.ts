import { ManualClock } from '@remora/base/testing';
import { createLocalChannel, createRpcRegistry, type RangeDescriptor, rangeRemoved } from '@remora/protocol';
import { expect, test } from 'vitest';
import { RemovedReplicaNotifier } from './removed-replica-notifier.ts';

const RANGE: RangeDescriptor = {
  ...{ rangeId: 2, start: new Uint8Array(0), end: new Uint8Array(0), epoch: { confVersion: 7, version: 1 } },
  replicas: [11, 12].map((replicaId) => ({ replicaId, nodeId: replicaId - 10, type: 'voter' })),
  revisionSource: 'range',
};

function bed() {
  const [clock, registry, told] = [new ManualClock(), createRpcRegistry(), [] as unknown[]];
  registry.handle(rangeRemoved, (request, _context, done) => {
    told.push(request);
    done(undefined, undefined);
  });
  const removedReplicaNotifier = new RemovedReplicaNotifier({
    clock,
    dialer: { channel: () => createLocalChannel({ registry, clock }) },
  });
  return { clock, told, removedReplicaNotifier };
}

test('a replica that is no member is told by which version it is none; a member is not', async () => {
  const { clock, told, removedReplicaNotifier } = bed();
  removedReplicaNotifier.heard(RANGE, { replicaId: 9, node: 3 });
  removedReplicaNotifier.heard(RANGE, { replicaId: 12, node: 2 });
  clock.advance(1);
  await Promise.resolve();
  expect(told).toEqual([{ rangeId: 2, replicaId: 9, confVersion: 7 }]);
});

test('it is told again after a pause, as long as it asks (SG2)', async () => {
  const { clock, told, removedReplicaNotifier } = bed();
  for (const ms of [0, 100, 1_000]) {
    clock.advance(ms);
    removedReplicaNotifier.heard(RANGE, { replicaId: 9, node: 3 });
  }
  await Promise.resolve();
  expect(told).toHaveLength(1);
  clock.advance(2_000);
  removedReplicaNotifier.heard(RANGE, { replicaId: 9, node: 3 });
  clock.advance(1);
  await Promise.resolve();
  expect(told).toHaveLength(2);
});
