import type { ClientDuplexStream } from '@grpc/grpc-js';
import * as pb from '@remora/protocol/etcd';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Clients, clientsOf } from '../etcd-diff/servers/clients.ts';
import { EtcdProcess, missingEtcd } from '../etcd-diff/servers/etcd-process.ts';
import { describeWith } from '../support/needs.ts';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';

const bytes = (text: string): Buffer => Buffer.from(text);
const NOPUT = 0;
const NODELETE = 1;
/** Three of them are one request, and more than a fragment. */
const LARGE = 'x'.repeat(450_000);

interface Row {
  readonly name: string;
  readonly options: pb.DeepPartial<pb.WatchCreateRequest>;
  /** From the first revision of the changes on, after they were made. */
  readonly past?: true;
}

const ROWS: readonly Row[] = [
  { name: 'everything', options: {} },
  { name: 'puts only', options: { filters: [NODELETE] } },
  { name: 'deletes only', options: { filters: [NOPUT] } },
  { name: 'nothing', options: { filters: [NOPUT, NODELETE] } },
  { name: 'what was there before', options: { prevKv: true } },
  { name: 'deletes, with what was there before', options: { filters: [NOPUT], prevKv: true } },
  { name: 'fragments', options: { fragment: true } },
  { name: 'fragments with what was there before', options: { fragment: true, prevKv: true } },
  { name: 'the past', options: { prevKv: true }, past: true },
  { name: 'the past, in fragments', options: { fragment: true, prevKv: true }, past: true },
  { name: 'the past, deletes only', options: { filters: [NOPUT], prevKv: true }, past: true },
];

const WATCHED = 7n;
const COMPANION = 8n;

describeWith(missingEtcd(), 'a watch gets what it gets of etcd 3.4.23, over one range and over nine', () => {
  let etcd: EtcdProcess;
  let one: Cluster;
  let nine: Cluster;
  let clients: readonly Clients[] = [];

  beforeAll(async () => {
    [etcd, one, nine] = await Promise.all([
      EtcdProcess.start(),
      Cluster.start({ nodes: 1 }),
      Cluster.start({ nodes: 1, flags: { 'pre-split': 'w/a,w/a0,w/b,w/c,w/d,w/e,w/f,x' } }),
    ]);
    clients = [etcd.client, one.node(1).client, nine.node(1).client].map(clientsOf);
  });
  afterAll(async () => {
    for (const { kv, lease, watch } of clients) for (const each of [kv, lease, watch]) each.close();
    await Promise.all([etcd?.stop(), one?.stop(), nine?.stop()]);
  });

  test.each(ROWS)('$name', async (row) => {
    const [theirs, ...ours] = await Promise.all(clients.map((each) => watched(each, row)));
    for (const mine of ours) expect(mine.events).toEqual(theirs?.events);
    if (row.options.fragment === true) for (const mine of ours) expect(mine.fragments).toBeGreaterThan(0);
    else for (const mine of ours) expect(mine.fragments).toBe(0);
  });
});

/** The events of a watch with these options while keys change, and how many of its messages are parts of another. */
async function watched(clients: Clients, { options, past }: Row): Promise<{ events: unknown[]; fragments: number }> {
  const before = (await put(clients, 'w/before', 'x')) + 1;
  if (past) await change(clients);
  const stream = new Watching(clients.watch.watch());
  const span = { key: bytes('w/'), rangeEnd: bytes('w0'), startRevision: BigInt(before) };
  stream.create({ ...span, ...options, watchId: WATCHED });
  stream.create({ ...span, watchId: COMPANION });
  if (!past) {
    await stream.created();
    await change(clients);
  }
  await stream.has(COMPANION, 'DELETE w/z');
  // All events before its answer were sent.
  await stream.progress();
  stream.end();
  return { events: stream.eventsOf(WATCHED).map(shown), fragments: stream.fragmentsOf(WATCHED) };
}

async function change(clients: Clients): Promise<void> {
  await put(clients, 'w/a', '1');
  await put(clients, 'w/b', '1');
  await put(clients, 'w/a', '2');
  await txn(clients, [putOp('w/c', '1'), deleteOp('w/b'), putOp('w/d', '1')]);
  await txn(clients, [putOp('w/d', LARGE), putOp('w/e', LARGE), putOp('w/f', LARGE)]);
  await txn(clients, [deleteOp('w/', 'w0')]);
  await put(clients, 'other', '1');
  await txn(clients, [putOp('w/z', 'last')]);
  await txn(clients, [deleteOp('w/z')]);
}

function putOp(key: string, value: string): pb.DeepPartial<pb.RequestOp> {
  return { request: { $case: 'requestPut', value: { key: bytes(key), value: bytes(value) } } };
}

function deleteOp(key: string, rangeEnd = ''): pb.DeepPartial<pb.RequestOp> {
  return { request: { $case: 'requestDeleteRange', value: { key: bytes(key), rangeEnd: bytes(rangeEnd) } } };
}

async function put(clients: Clients, key: string, value: string): Promise<number> {
  return txn(clients, [putOp(key, value)]);
}

function txn({ kv }: Clients, success: pb.DeepPartial<pb.RequestOp>[]): Promise<number> {
  return new Promise((resolve, reject) => {
    kv.txn(pb.TxnRequest.fromPartial({ success }), (error, answer) =>
      error === null ? resolve(answer.header?.revision ?? 0) : reject(error),
    );
  });
}

/** What an event says, without revisions. Those of one revision have no order between ranges. */
function shown({ type, kv, prevKv }: pb.Event): unknown {
  const value = (pair: pb.KeyValue | undefined): string | undefined =>
    pair === undefined ? undefined : `${pair.value.length} ${pair.value.subarray(0, 8)} version ${pair.version}`;
  return [type === 0 ? 'PUT' : 'DELETE', kv?.key.toString(), value(kv), value(prevKv)];
}

class Watching {
  readonly #stream: ClientDuplexStream<pb.WatchRequest, pb.WatchResponse>;
  readonly #answers: pb.WatchResponse[] = [];

  constructor(stream: ClientDuplexStream<pb.WatchRequest, pb.WatchResponse>) {
    this.#stream = stream;
    stream.on('data', (answer: pb.WatchResponse) => this.#answers.push(answer));
    stream.on('error', () => {}); // it ends when the test does
  }

  create(value: pb.DeepPartial<pb.WatchCreateRequest>): void {
    this.#send({ requestUnion: { $case: 'createRequest', value } });
  }

  async created(): Promise<void> {
    await eventually('both watches are created', () => this.#answers.filter(({ created }) => created).length === 2);
  }

  async has(watchId: bigint, event: string): Promise<void> {
    const names = (): readonly string[] =>
      this.eventsOf(watchId).map(({ type, kv }) => `${type === 0 ? 'PUT' : 'DELETE'} ${kv?.key}`);
    await eventually(`the watch has ${event}`, () => names().includes(event));
  }

  async progress(): Promise<void> {
    this.#send({ requestUnion: { $case: 'progressRequest', value: {} } });
    await eventually('the stream reports progress', () => this.#answers.some(({ watchId }) => watchId === -1n));
  }

  eventsOf(id: bigint): readonly pb.Event[] {
    return this.#answers
      .filter(({ watchId }) => watchId === id)
      .flatMap(({ events }) => events)
      .sort(byRevisionThenKey);
  }

  fragmentsOf(id: bigint): number {
    return this.#answers.filter(({ watchId, fragment }) => watchId === id && fragment).length;
  }

  end(): void {
    this.#stream.cancel();
  }

  #send(request: pb.DeepPartial<pb.WatchRequest>): void {
    this.#stream.write(pb.WatchRequest.fromPartial(request));
  }
}

function byRevisionThenKey(a: pb.Event, b: pb.Event): number {
  const [left, right] = [a.kv, b.kv];
  return (
    (left?.modRevision ?? 0) - (right?.modRevision ?? 0) ||
    Buffer.compare(left?.key ?? bytes(''), right?.key ?? bytes(''))
  );
}
