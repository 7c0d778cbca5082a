import { createHash } from 'node:crypto';
import { SeededRandom, ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import {
  type BackupPart,
  decodeBackup,
  type HealthCondition,
  healthCondition,
  type KeyValue,
  type Query,
} from '@remora/protocol';
import type * as pb from '@remora/protocol/etcd';
import { describe, expect, test } from 'vitest';
import { ALONE_NODE } from '../../../test/support/alone-node.ts';
import type { Backend, BackendDone } from '../../backend.ts';
import type { CallDone, CallInfo, GiveUp, StreamSink } from '../../calls.ts';
import { etcdStatus } from '../errors.ts';
import { Headers } from '../headers.ts';
import { EtcdMaintenance } from './maintenance-service.ts';

const CALL: CallInfo = { timeoutMs: 1_000, callerMs: undefined, seen: { newest: 0 }, principal: undefined };
const COMPACTED = new ServiceError('COMPACTED', 'compacted');

function pair(key: string, value = `value of ${key}`): KeyValue {
  return { key: Buffer.from(key), value: Buffer.from(value), createRevision: 2, modRevision: 3, version: 2, lease: 0n };
}

/** Plain keys in pages; one page is one answer. */
class PagedBackend {
  readonly nodeId = 1;
  pages: readonly (readonly KeyValue[])[];
  readonly asked: Query[] = [];
  leaderNode = 1;
  /** The number of the scan that fails with COMPACTED. */
  fails = 0;
  /** Whether queries are left without an answer. */
  silent = false;
  canceled = 0;

  check(): void {}

  constructor(pages: readonly (readonly KeyValue[])[]) {
    this.pages = pages;
  }

  view() {
    const nodes = [1, 2].map((nodeId) => ({ state: 'up', descriptor: { nodeId, name: `n${nodeId}` } }));
    return { clusterId: 'c', nodes, ranges: [], leaders: [], masterLeader: 1 };
  }

  query(query: Query, _options: object, done: BackendDone<unknown>): () => void {
    this.asked.push(query);
    if (this.silent) return () => void this.canceled++;
    const scans = this.asked.filter(({ type }) => type === 'scan').length;
    if (query.type === 'scan' && scans === this.fails) done(COMPACTED, undefined);
    else done(undefined, { result: this.#answer(query), revision: 9, raftTerm: 4 });
    return () => {};
  }

  #answer(query: Query): object {
    if (query.type !== 'scan') return { type: 'status', status: this.#status() };
    const page = query.key.length === 0 ? 0 : Number(Buffer.from(query.key).toString());
    const isLast = page + 1 >= this.pages.length;
    return { type: 'scan', kvs: this.pages[page] ?? [], next: isLast ? undefined : Buffer.from(String(page + 1)) };
  }

  #status(): object {
    const sums = { commit: 20, applied: 19, bytes: 500, keys: 3, leases: 0, watches: 0, replicas: [] };
    return { ...sums, rangeId: 1, leaderNode: this.leaderNode, term: 4, revision: 9, compactRevision: 5 };
  }
}

function bed(pages: readonly (readonly KeyValue[])[] = [[pair('a'), pair('b')], [pair('c')]]) {
  const backend = new PagedBackend(pages);
  const conditions: HealthCondition[] = [];
  const clock = new ManualClock();
  const deps = { backend: backend as unknown as Backend, clock, random: new SeededRandom(1) };
  const node = { ...ALONE_NODE, conditions: () => conditions };
  const maintenance = new EtcdMaintenance({ ...deps, headers: new Headers(deps.backend), node });
  return { backend, conditions, clock, maintenance };
}

type Handler<Q, A> = (request: Q, call: CallInfo, done: CallDone<A>) => GiveUp | undefined;

/** The answer, or code and text of the error as clients get them. */
function ask<Q, A>(handler: Handler<Q, A>, of: object, request: Q): Promise<A | string> {
  return new Promise((resolve) => {
    const failed = (error: ServiceError): void => {
      const { status, message } = etcdStatus(error);
      resolve(`${status} ${message}`);
    };
    try {
      handler.call(of, request, CALL, (error, response) =>
        error === undefined ? resolve(response as A) : failed(error),
      );
    } catch (error) {
      failed(error as ServiceError);
    }
  });
}

describe('hashes', () => {
  const hashOf = (pages: readonly (readonly KeyValue[])[], revision = 0n) => {
    const { maintenance } = bed(pages);
    return ask(maintenance.hashKv, maintenance, { revision }) as Promise<pb.HashKVResponse>;
  };

  test('name the revision, and the one that is compacted', async () => {
    expect(await hashOf([[pair('a')]])).toMatchObject({ compactRevision: 5, hashRevision: 9, header: { revision: 9 } });
    expect(await hashOf([[pair('a')]], 7n)).toMatchObject({ hashRevision: 7, header: { revision: 9 } });
  });

  test('do not depend on how keys are divided among ranges, and depend on every pair', async () => {
    const pairs = ['a', 'b', 'c', 'd'].map((key) => pair(key));
    const [a, b, c, d] = pairs as [KeyValue, KeyValue, KeyValue, KeyValue];
    const hashes = await Promise.all(
      [[pairs], [[a], [b, c], [], [d]], [[], [a, b, c, d]]].map((pages) => hashOf(pages)),
    );
    expect(new Set(hashes.map(({ hash }) => hash)).size).toBe(1);
    expect((await hashOf([[a, b, c]])).hash).not.toBe(hashes[0]?.hash);
    expect((await hashOf([[a, b, c, pair('d', 'other')]])).hash).not.toBe(hashes[0]?.hash);
  });

  test('of a revision that no range can have are refused, and a negative one means the newest', async () => {
    expect(await hashOf([[]], 2n ** 62n)).toBe('11 etcdserver: mvcc: required revision is a future revision');
    expect(await hashOf([[]], -5n)).toMatchObject({ hashRevision: 9 });
  });

  test('end with the error of a page', async () => {
    const { backend, maintenance } = bed();
    backend.fails = 2;
    expect(await ask(maintenance.hash, maintenance, {})).toBe(
      '11 etcdserver: mvcc: required revision has been compacted',
    );
  });

  test('end at the deadline of the call, and a page in flight is canceled', async () => {
    const { backend, clock, maintenance } = bed();
    backend.silent = true;
    const answer = ask(maintenance.hashKv, maintenance, { revision: 0n });
    clock.advance(1_001);
    expect(await answer).toBe('14 etcdserver: request timed out');
    expect(backend.canceled).toBe(1);
  });

  test('of which too many run at a time are refused', async () => {
    const { backend, clock, maintenance } = bed();
    backend.silent = true;
    const running = Array.from({ length: 4 }, () => ask(maintenance.hash, maintenance, {}));
    expect(await ask(maintenance.hash, maintenance, {})).toBe('8 etcdserver: too many requests');
    clock.advance(1_001);
    await Promise.all(running);
    backend.silent = false;
    expect(await ask(maintenance.hash, maintenance, {})).toMatchObject({ header: { revision: 9 } });
  });
});

class SnapshotSink implements StreamSink<pb.SnapshotResponse> {
  readonly blobs: pb.SnapshotResponse[] = [];
  readonly ended: Promise<ServiceError | undefined>;
  #end: (error: ServiceError | undefined) => void = () => {};
  keepsUp = true;

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }
  write(response: pb.SnapshotResponse): boolean {
    this.blobs.push(response);
    return this.keepsUp;
  }
  unread(): number {
    return 0;
  }
  end(error?: ServiceError): void {
    this.#end(error);
  }
  get image(): Buffer {
    return Buffer.concat(this.blobs.map(({ blob }) => blob));
  }
}

async function partsOf(image: Buffer) {
  let at = 0;
  const read = async (bytes: number): Promise<Buffer> => {
    const piece = image.subarray(at, at + bytes);
    at += bytes;
    return piece;
  };
  const parts: BackupPart[] = [];
  for await (const part of decodeBackup(read)) parts.push(part);
  return parts;
}

describe('a snapshot', () => {
  test('is the image of a backup, in the size and with the hash that etcdctl looks for', async () => {
    const { maintenance, backend } = bed([[pair('a'), pair('b', 'x'.repeat(100_000))], [], [pair('c')]]);
    const sink = new SnapshotSink();
    maintenance.snapshot(sink, CALL).onRequest({});
    expect(await sink.ended).toBeUndefined();
    const [header, ...pages] = await partsOf(sink.image);
    expect(header).toMatchObject({ header: { clusterId: 'c', revision: 9, pairs: 3, program: '0.0.0-test' } });
    expect(pages.flatMap((page) => (page.type === 'pairs' ? page.pairs : [])).map(({ key }) => String(key))).toEqual([
      ...['a', 'b', 'c'],
    ]);
    expect(sink.image.length % 512).toBe(32);
    const hash = createHash('sha256').update(sink.image.subarray(0, -32)).digest();
    expect(sink.image.subarray(-32)).toEqual(hash);
    expect(sink.blobs.every(({ blob }) => blob.length <= 32 * 1024)).toBe(true);
    expect(sink.blobs.map(({ remainingBytes }) => remainingBytes > 0n)).toEqual([
      ...sink.blobs.slice(1).map(() => true),
      false,
    ]);
    // The second reading is one of the revision of the first.
    expect(backend.asked.map((query) => query.type === 'scan' && query.revision)).toEqual([0, 9, 9, 9, 9, 9]);
  });

  test('waits while its client does not read', async () => {
    const { maintenance, backend } = bed();
    const sink = new SnapshotSink();
    sink.keepsUp = false;
    const stream = maintenance.snapshot(sink, CALL);
    stream.onRequest({});
    await expect.poll(() => sink.blobs.length).toBe(1);
    const asked = backend.asked.length;
    await new Promise(setImmediate);
    expect([sink.blobs.length, backend.asked.length]).toEqual([1, asked]);
    sink.keepsUp = true;
    stream.onDrain();
    expect(await sink.ended).toBeUndefined();
    expect(await partsOf(sink.image)).toHaveLength(3);
  });

  test('ends when its client does not read for long, so that others may have one (SN5)', async () => {
    const { maintenance, clock } = bed();
    const sinks = Array.from({ length: 4 }, () => new SnapshotSink());
    for (const sink of sinks) {
      sink.keepsUp = false;
      maintenance.snapshot(sink, CALL).onRequest({});
    }
    await expect.poll(() => sinks.map(({ blobs }) => blobs.length)).toEqual([1, 1, 1, 1]);
    clock.advance(59_000);
    expect(() => maintenance.snapshot(new SnapshotSink(), CALL).onRequest({})).toThrow('already answers 4 calls');
    clock.advance(2_000);
    for (const sink of sinks) expect(await sink.ended).toMatchObject({ code: 'DEADLINE_EXCEEDED' });
    await new Promise(setImmediate);
    const next = new SnapshotSink();
    maintenance.snapshot(next, CALL).onRequest({});
    expect(await next.ended).toBeUndefined();
  });

  test('of a revision that is compacted meanwhile ends with that error, and its image is refused', async () => {
    const { maintenance, backend } = bed();
    backend.fails = 4;
    const sink = new SnapshotSink();
    maintenance.snapshot(sink, CALL).onRequest({});
    expect(await sink.ended).toMatchObject({ code: 'COMPACTED' });
    await expect(partsOf(sink.image)).rejects.toThrow('is incomplete');
  });

  test('stops when its client leaves', async () => {
    const { maintenance, backend } = bed();
    backend.silent = true;
    const stream = maintenance.snapshot(new SnapshotSink(), CALL);
    stream.onRequest({});
    stream.onClose();
    expect(backend.canceled).toBe(1);
  });
});

describe('alarms and status', () => {
  const noSpace = healthCondition('diskReserve', { nodeId: 2 }, 'the disk of node n2 has 5 MiB free');
  const alarm = (request: Partial<pb.AlarmRequest>, conditions: readonly HealthCondition[] = []) => {
    const { maintenance, conditions: known } = bed();
    known.push(...conditions);
    return ask(maintenance.alarm, maintenance, { action: 0, memberID: 0n, alarm: 0, ...request });
  };

  test('NOSPACE is the alarm of a node below its reserve', async () => {
    expect(await alarm({})).toMatchObject({ alarms: [] });
    const alarms = [{ memberID: 2, alarm: 1 }];
    expect(await alarm({}, [noSpace])).toMatchObject({ alarms });
    expect(await alarm({ alarm: 1 }, [noSpace])).toMatchObject({ alarms });
    expect(await alarm({ alarm: 2 }, [noSpace])).toMatchObject({ alarms: [] });
  });

  test('no alarm is raised, and one that is raised ends by itself', async () => {
    expect(await alarm({ action: 1, memberID: 2n, alarm: 1 })).toMatch(/^12 remora: alarms cannot be raised/);
    expect(await alarm({ action: 2, memberID: 2n, alarm: 1 })).toMatchObject({ alarms: [] });
    expect(await alarm({ action: 2, memberID: 2n, alarm: 1 }, [noSpace])).toMatch(/^12 .*ends by itself/);
  });

  test('the status has all fields, and what is wrong', async () => {
    const { maintenance, conditions, backend } = bed();
    const status = { version: '3.6.0', dbSize: 500, dbSizeInUse: 500, leader: 1, raftTerm: 4, isLearner: false };
    const indexes = { raftIndex: 20, raftAppliedIndex: 19, errors: [] };
    expect(await ask(maintenance.status, maintenance, {})).toMatchObject({ ...status, ...indexes });
    conditions.push(noSpace);
    backend.leaderNode = 0;
    expect(await ask(maintenance.status, maintenance, {})).toMatchObject({
      leader: 0,
      errors: ['etcdserver: no leader', 'memberID:2 alarm:NOSPACE ', 'the disk of node n2 has 5 MiB free'],
    });
  });
});

describe('moving the leader', () => {
  const move = (targetID: bigint, leaderNode = 1) => {
    const { maintenance, backend } = bed();
    backend.leaderNode = leaderNode;
    return ask(maintenance.moveLeader, maintenance, { targetID });
  };

  test('is refused as in etcd to another node than the leader, and to what is no member', async () => {
    expect(await move(2n, 2)).toBe('9 etcdserver: not leader');
    expect(await move(77n)).toBe('9 etcdserver: bad leader transferee');
    expect(await move(2n ** 63n)).toBe('9 etcdserver: bad leader transferee');
  });

  test('to the leader itself does nothing', async () => {
    expect(await move(1n)).toMatchObject({ header: { memberId: 1 } });
  });
});
