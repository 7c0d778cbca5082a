import { utf8 } from '@remora/base';
import type { StreamContext, WatchMessage, WatchRequest } from '@remora/protocol';
import { expect, test, vi } from 'vitest';
import { CrashWorld } from '../install/test-crash-world.ts';
import { DESCRIPTOR } from '../state/test-bed.ts';
import { boot, replicaOf } from '../test-store.ts';
import { WatchSession } from './watch-session.ts';

const create = (watchId: number): WatchRequest => ({
  ...{ kind: 'create', watchId, rangeId: DESCRIPTOR.rangeId, epoch: DESCRIPTOR.epoch, startRevision: 0 },
  span: { start: utf8('a'), end: utf8('b') },
  ...{ noPut: false, noDelete: false, prevKv: false },
});

/** A session with one watch, on a replica that leads. */
async function watched() {
  const { store } = await boot(new CrashWorld(1));
  await store.createReplica(DESCRIPTOR, 11);
  const replica = replicaOf({ store });
  replica.roleChanged({ role: 'leader', term: 2, leader: 11 });
  Object.assign(replica.group, { readIndex: (done: () => void) => done() });
  const opened = vi.spyOn(replica.watches, 'openStream');
  const closed = vi.spyOn(replica.watches, 'closeStream');
  const told: string[] = [];
  const context: StreamContext<WatchMessage> = {
    send: (message) => told.push(`${message.kind} ${message.watchId}`) > 0,
    ...{ peer: 2, end() {}, onDrain() {} },
  };
  const session = new WatchSession(() => replica, context, create(1));
  return { replica, session, told, streams: () => opened.mock.calls.length - closed.mock.calls.length };
}

test('a session lets go of a replica with the last watch on it (WS3)', async () => {
  const { session, told, streams } = await watched();
  session.onMessage(create(2));
  session.onMessage({ kind: 'cancel', watchId: 1 });
  expect(streams()).toBe(1);
  session.onMessage({ kind: 'cancel', watchId: 2 });
  expect(streams()).toBe(0);
  session.onMessage(create(3));
  expect(streams()).toBe(1);
  expect(told).toEqual(['created 1', 'created 2', 'created 3']);
});

test('a session lets go of a replica that ends its watches (WS3)', async () => {
  const { replica, session, told, streams } = await watched();
  session.onMessage(create(2));
  replica.close();
  expect(told).toEqual(['created 1', 'created 2', 'ended 1', 'ended 2']);
  expect(streams()).toBe(0);
});
