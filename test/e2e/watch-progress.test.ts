/** Progress of etcd watch streams against a real cluster whose ranges split, move and merge. */

import { credentials } from '@grpc/grpc-js';
import { WatchCreateRequest, type WatchRequest, type WatchResponse } from '@remora/protocol/etcd';
import { WatchClient } from '@remora/protocol/grpc-clients';
import { connect } from 'remora';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Finding } from '../checkers/check.ts';
import type { Change } from '../checkers/online/watch.ts';
import { WatchStreamCheck, type WatchStreamEvent } from '../checkers/online/watch-stream.ts';
import { jsonHere, runHere } from './command-line.ts';
import { eventually, pause } from './eventually.ts';
import { Cluster } from './harness.ts';

const SLOW = 240_000;
const PATIENCE = { timeoutMs: 60_000 };
const BATCHES = 10;
const STREAMS = 4;
const PAIRS = 5;

interface RangeJson {
  readonly id: number;
  readonly leaderNode: number;
  readonly replicas: readonly { readonly nodeId: number; readonly type: string }[];
}

/** The three founders, and the node that joined. */
const NODE_IDS = [1, 2, 3, 1001];
const nameOf = (nodeId: number | undefined): string => `n${NODE_IDS.indexOf(nodeId ?? 0) + 1}`;

interface OperatorsJson {
  readonly operators: readonly unknown[];
}

let cluster: Cluster;
beforeAll(async () => {
  cluster = await Cluster.start({ flags: { 'pre-split': 'm' }, joining: 1 });
  await done('schedulers', 'pause', 'all', '--for', '1h');
  // A scheduler may have moved a replica to the new node before that.
  await eventually('every range has three voters, and nothing is in progress', async () => {
    const { operators } = (await jsonHere(cluster.endpoints, ['admin', 'operators', 'ls'])) as OperatorsJson;
    return operators.length === 0 && (await ranges()).every(({ replicas }) => replicas.length === 3);
  });
}, SLOW);
afterAll(() => cluster?.stop());

const admin = (...args: readonly string[]) => runHere(cluster.endpoints, ['admin', ...args]);

async function done(...args: readonly string[]): Promise<void> {
  const { code, err } = await admin(...args);
  if (code !== 0) throw new Error(`remora admin ${args.join(' ')} ended with ${code}:\n${err}`);
}

async function ranges(): Promise<readonly RangeJson[]> {
  const { ranges: found } = (await jsonHere(cluster.endpoints, ['admin', 'ranges'])) as {
    readonly ranges: readonly RangeJson[];
  };
  return found;
}

/** One watch stream, and what it was told so far. */
class Tape {
  readonly name: string;
  readonly #client: WatchClient;
  readonly #stream: ReturnType<WatchClient['watch']>;
  readonly #see: (event: WatchStreamEvent) => void;
  progress = 0;
  error: Error | undefined;

  constructor(name: string, endpoint: string, see: (event: WatchStreamEvent) => void) {
    this.name = name;
    this.#see = see;
    this.#client = new WatchClient(endpoint, credentials.createInsecure());
    this.#stream = this.#client.watch();
    this.#stream.on('data', (message: WatchResponse) => this.#message(message));
    this.#stream.on('error', (error: Error) => {
      this.error = error;
    });
  }

  /** A create, and a progress request right behind it. */
  pair(from: number, span: { readonly start: string; readonly end: string }, acknowledged: number): void {
    this.#see({ type: 'create', stream: this.name, from, ...span });
    const value = WatchCreateRequest.fromPartial({
      ...{ key: Buffer.from(span.start), rangeEnd: Buffer.from(span.end) },
      ...{ startRevision: BigInt(from), fragment: true },
    });
    this.#send({ requestUnion: { $case: 'createRequest', value } });
    this.#see({ type: 'ask', stream: this.name, acknowledged });
    this.#send({ requestUnion: { $case: 'progressRequest', value: {} } });
  }

  close(): void {
    this.#stream.cancel();
    this.#client.close();
  }

  #send(request: WatchRequest): void {
    this.#stream.write(request);
  }

  #message({ watchId, header, created, canceled, fragment, events }: WatchResponse): void {
    const revision = Number(header?.revision ?? 0);
    if (watchId === -1n && !created) this.progress = Math.max(this.progress, revision);
    const changes = events.map(({ type, kv }): Change => {
      const key = Buffer.from(kv?.key ?? []).toString();
      return { revision: Number(kv?.modRevision ?? 0), key, kind: type === 0 ? 'put' : 'delete' };
    });
    const message = { watchId: Number(watchId), revision, created, canceled, fragment, events: changes };
    this.#see({ type: 'message', stream: this.name, message });
  }
}

/** Splits, moves, hands over and merges, as long as the pairs go on; returns how often it has done all of that. */
async function changeRanges(over: () => boolean): Promise<number> {
  for (let rounds = 0; ; rounds++) {
    if (over() && rounds > 0) return rounds;
    await done('split', '--key', 'f');
    const [one, other, right] = await eventually('there are three ranges', async () => {
      const found = await ranges();
      return found.length === 3 && found;
    });
    const id = String(right?.id);
    const members = right?.replicas.map(({ nodeId }) => nodeId) ?? [];
    const [leaves, stays] = members.filter((nodeId) => nodeId !== right?.leaderNode).map(nameOf); // A leader is not moved.
    const comes = nameOf(NODE_IDS.find((nodeId) => !members.includes(nodeId)));
    await done('move', id, leaves ?? '', comes);
    await done('merge', String(one?.id), String(other?.id));
    await done('transfer-leader', id, comes);
    await done('transfer-leader', id, stays ?? '');
    await done('move', id, comes, leaves ?? '');
  }
}

test(
  '200 pipelined create-and-progress pairs while ranges split, move and merge: no event follows progress past it',
  async () => {
    await using client = await connect({ endpoints: cluster.endpoints, requestTimeout: '30s' });
    const check = new WatchStreamCheck();
    const found: Finding[] = [];
    const see = (event: WatchStreamEvent): void => void found.push(...check.observe(event));
    let acknowledged = 0;
    const write = async (key: string): Promise<void> => {
      const { revision } = await client.kv.put(key, 'v');
      see({ type: 'changed', revision, key, kind: 'put' });
      acknowledged = Math.max(acknowledged, revision);
    };
    for (const key of ['a', 'g', 'n', 't', 'a', 'g', 'n', 't']) await write(key);
    const first = 1;

    let [over, tried] = [false, 0];
    const changing = changeRanges(() => over);
    const writing = ['a', 'g', 'n', 't'].map(async (key) => {
      while (!over) await Promise.all([write(key), pause(10)]);
    });
    const pairs = async (): Promise<void> => {
      for (let batch = 0; batch < BATCHES; batch++) {
        const tapes = Array.from({ length: STREAMS }, (_, i) => {
          return new Tape(`${batch}/${i}`, cluster.node(1 + (i % 3)).client, see);
        });
        const spans = [
          { start: 'a', end: 'z' },
          { start: 'n', end: 'z' },
          { start: 'a', end: 'b' },
        ];
        const sent = acknowledged;
        for (const tape of tapes) {
          for (let pair = 0; pair < PAIRS; pair++, tried++) {
            tape.pair(pair % 3 === 2 ? 0 : first, spans[pair % spans.length] ?? { start: 'a', end: 'z' }, sent);
          }
        }
        await eventually(
          'every stream has progress past what was acknowledged before it was asked for',
          () => {
            const broken = tapes.find(({ error }) => error !== undefined);
            if (broken?.error !== undefined) throw broken.error;
            return found.length > 0 || tapes.every(({ progress }) => progress >= sent);
          },
          PATIENCE,
        );
        for (const tape of tapes) tape.close();
      }
    };
    try {
      await pairs();
    } finally {
      over = true;
    }
    await Promise.all(writing);
    const rounds = await changing;
    expect(found).toEqual([]);
    expect(tried).toBe(BATCHES * STREAMS * PAIRS);
    expect(rounds).toBeGreaterThan(0);
  },
  SLOW,
);
