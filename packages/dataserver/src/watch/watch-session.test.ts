import { ServiceError, utf8 } from '@remora/base';
import { encodeEntry, type StreamContext, type WatchCreate, type WatchMessage } from '@remora/protocol';
import { describe, expect, test, vi } from 'vitest';
import { boot, replicaOf } from '../../test/support/booted-store.ts';
import { CrashWorld } from '../../test/support/crash-world.ts';
import { NOBODY_NUMBERS } from '../../test/support/own-revisions.ts';
import { DESCRIPTOR, put } from '../../test/support/state-bed.ts';
import type { ClosedDone } from '../range/requests/closed-revisions.ts';
import type { Drawing } from '../revisions/revision-drawer.ts';
import { WatchSession } from './watch-session.ts';

const create = (watchId: number): WatchCreate => ({
  ...{ kind: 'create', watchId, rangeId: DESCRIPTOR.rangeId, epoch: DESCRIPTOR.epoch, startRevision: 0 },
  span: { start: utf8('a'), end: utf8('b') },
  ...{ noPut: false, noDelete: false, prevKv: false },
});

function textOf(message: WatchMessage): string {
  return `${message.kind} ${message.watchId}${message.kind === 'ended' ? ` ${message.code}` : ''}`;
}

const NUMBERED = { ...DESCRIPTOR, revisionSource: 'master' } as const;

/** A session with one watch, which names its first revision, on a replica that leads. */
async function watched(descriptor = DESCRIPTOR) {
  const { store } = await boot(new CrashWorld(1));
  await store.createReplica(descriptor, 11);
  const replica = replicaOf({ store });
  replica.roleChanged({ role: 'leader', term: 2, leader: 11 });
  const lead = (done: () => void): void => done();
  Object.assign(replica.group, { readIndex: lead, leaseRead: lead });
  const opened = vi.spyOn(replica.watches, 'openStream');
  const closed = vi.spyOn(replica.watches, 'closeStream');
  const messages: WatchMessage[] = [];
  const told: string[] = [];
  const context: StreamContext<WatchMessage> = {
    send: (message) => messages.push(message) === told.push(textOf(message)),
    ...{ caller: { kind: 'node', nodeId: 2 }, end() {}, onDrain() {} },
  };
  const session = new WatchSession(() => replica, context, { ...create(1), startRevision: 2 });
  return { replica, session, messages, told, streams: () => opened.mock.calls.length - closed.mock.calls.length };
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
  expect(told).toEqual(['created 1', 'created 2', 'ended 1 NOT_LEADER', 'ended 2 NOT_LEADER']);
  expect(streams()).toBe(0);
});

describe('a watch from now on, where the master gives revisions to several ranges', () => {
  async function numbered() {
    const bed = await watched(NUMBERED);
    const closings: ClosedDone[] = [];
    vi.spyOn(bed.replica.closing, 'closeNewest').mockImplementation((done) => void closings.push(done));
    bed.session.onMessage(create(2));
    return { ...bed, closed: (error?: ServiceError) => closings.shift()?.(error) };
  }

  test('begins once every revision that was given out before is closed (WS4)', async () => {
    const { told, closed } = await numbered();
    expect(told).toEqual(['created 1']);
    closed();
    expect(told).toEqual(['created 1', 'created 2']);
  });

  test('does not begin when it is cancelled meanwhile (WS2)', async () => {
    const { session, told, closed } = await numbered();
    session.onMessage({ kind: 'cancel', watchId: 2 });
    closed();
    expect(told).toEqual(['created 1']);
  });

  test('is refused for the moment when nothing can be closed', async () => {
    const { told, closed } = await numbered();
    closed(new ServiceError('RESOURCE_EXHAUSTED', 'too many wait'));
    expect(told).toEqual(['created 1', 'ended 2 UNAVAILABLE']);
  });

  test('does not wait if it names its first revision', async () => {
    const { session, told } = await numbered();
    session.onMessage({ ...create(3), startRevision: 1 });
    expect(told).toEqual(['created 1', 'created 3']);
  });
});

describe('a question how far the watches are', () => {
  test('is answered once the newest revision is closed; without that they are told, and it is not (WS6)', async () => {
    const { replica, session, messages } = await watched(NUMBERED);
    const closings: ClosedDone[] = [];
    vi.spyOn(replica.closing, 'closeNewest').mockImplementation((done) => void closings.push(done));
    for (const question of [1, 2, 3]) session.onMessage({ kind: 'progress', question });
    expect([messages.length, closings.length]).toEqual([1, 1]);
    closings[0]?.(new ServiceError('UNAVAILABLE', 'no master'));
    expect(messages.at(-1)).toMatchObject({ kind: 'events', watchId: 1, events: [] });
    closings[1]?.(undefined);
    expect(messages.at(-1)).toMatchObject({ kind: 'progress', watchId: 1, question: 3 });
    expect([messages.length, closings.length]).toEqual([3, 2]);
  });
});

describe('a watch that names its first revision', () => {
  /** A write asks for a revision while another range is given 60; then a watch from 61 is asked for. */
  async function writing() {
    let drawing: Drawing | undefined;
    vi.spyOn(NOBODY_NUMBERS, 'want').mockImplementation((asking) => {
      drawing = asking;
    });
    const bed = await watched(NUMBERED);
    const { replica, session, told } = bed;
    const proposed: Uint8Array[] = [];
    const propose = (data: Uint8Array) => ({ index: 1 + proposed.push(data), term: 2 });
    Object.assign(replica.group, { propose, role: 'leader' });
    const apply = (index: number, data: Uint8Array) =>
      replica.apply([{ index, term: 2, type: 'normal', data }], replica.state.conf);
    await apply(1, encodeEntry({ rangeTimeMs: 1, wallMs: 0, epoch: NUMBERED.epoch, commands: [] }));
    const request = {
      rangeId: NUMBERED.rangeId,
      epoch: NUMBERED.epoch,
      requestId: 'r',
      authRevision: 0,
      deadlineMs: 50_000,
    };
    const body = { kind: 'command', command: { type: 'kv', op: put('a', '1') } } as const;
    replica.requests.execute(
      { ...request, body },
      () => {},
      () => {},
    );
    await new Promise((resolve) => setImmediate(resolve)); // then it waits for a revision
    expect(drawing?.sending()).toMatchObject({ count: 1 });
    session.onMessage({ ...create(2), startRevision: 61 });
    const answered = async (): Promise<void> => {
      drawing?.answered({ first: 50, count: 1 });
      expect(told).toEqual(['created 1']);
      await apply(2, proposed[0] ?? expect.fail());
    };
    return { ...bed, answered };
  }

  test('begins once a write is applied that gets a revision below that, and was on its way (WS5)', async () => {
    const { replica, told, answered } = await writing();
    expect(told).toEqual(['created 1']);
    await answered();
    expect(replica.state.revision).toBe(50);
    expect(told).toEqual(['created 1', 'events 1', 'created 2']);
  });

  test('waits for nothing that the range has reached, or that comes behind what it has', async () => {
    const { session, told, answered } = await writing();
    await answered();
    session.onMessage({ ...create(3), startRevision: 51 });
    session.onMessage({ ...create(4), startRevision: 1_000 });
    expect(told.slice(-2)).toEqual(['created 3', 'created 4']);
  });

  test('is to be asked for elsewhere when leadership is lost meanwhile', async () => {
    const { replica, told } = await writing();
    replica.roleChanged({ role: 'follower', term: 3, leader: 12 });
    expect(told).toEqual(['created 1', 'ended 2 NOT_LEADER', 'ended 1 NOT_LEADER']);
  });

  test('does not begin when it is cancelled meanwhile (WS2)', async () => {
    const { session, told, answered } = await writing();
    session.onMessage({ kind: 'cancel', watchId: 2 });
    await answered();
    expect(told).toEqual(['created 1', 'events 1']);
  });
});
