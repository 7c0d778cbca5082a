/**
 * Clients with etcd watch streams: the gateway's real stream over the backend of a node. They create and cancel
 * watches, request progress right after a create, and read slowly.
 *
 * SL1. The messages satisfy what `WatchStreamCheck` promises, compared with the history of the keys.
 * SL2. In the end a stream with watches answers a progress request, after it has sent everything that was acknowledged
 *      before.
 */

import type { ServiceError } from '@remora/base';
import * as pb from '@remora/protocol/etcd';
import { Headers } from '../../../packages/gateway/src/etcd/headers.ts';
import { ETCD_LIMITS } from '../../../packages/gateway/src/etcd/limits.ts';
import { WatchStream } from '../../../packages/gateway/src/etcd/watch-stream.ts';
import { openBackend } from '../../../packages/gateway/test/support/open-backend.ts';
import type { Change } from '../../checkers/online/watch.ts';
import { WatchStreamCheck, type WatchStreamEvent } from '../../checkers/online/watch-stream.ts';
import type { RangeCluster } from './bed.ts';
import { type Truth, textOf } from './truth.ts';

/** Small enough that runs include fragmented messages and unrequested progress. */
const LIMITS = { ...ETCD_LIMITS, fragmentBytes: 250, progressIntervalMs: 300 };
const WATCHES_MAX = 8;
const SPANS = [
  { start: 'k', end: 'l' },
  { start: 'k0', end: 'k2' },
  { start: 'k1', end: undefined },
] as const;

interface Client {
  readonly name: string;
  readonly node: number;
  readonly life: number;
  readonly stream: WatchStream;
  /** Start revisions of watches whose creates are not answered yet, in order. */
  readonly creating: number[];
  /** The start revision of each watch. 0: from now on. */
  readonly watches: Map<bigint, number>;
  progress: number;
  over: boolean;
  full: boolean;
}

export class StreamLoad {
  readonly #bed: RangeCluster;
  readonly #acknowledged: () => number;
  readonly #check = new WatchStreamCheck({ allChangesKnown: true });
  readonly #clients: Client[] = [];
  readonly #faults: string[] = [];
  /** The answers that each stream still owes in the end. */
  readonly #owed = new Map<Client, number>();
  readonly figures = {
    streams: 0,
    pairs: 0,
    answers: 0,
    'watches told of progress': 0,
    fragments: 0,
    'full streams': 0,
  };

  /** `acknowledged` returns the highest revision that any client received. */
  constructor(bed: RangeCluster, acknowledged: () => number) {
    this.#bed = bed;
    this.#acknowledged = acknowledged;
  }

  /** One client with streams through a node. When one stream ends, it begins another. */
  client(nodeId: number, untilMs: number): void {
    const { clock, random } = this.#bed;
    let client: Client | undefined;
    const next = (): void => {
      if (clock.monotonicMs() >= untilMs) return;
      client = client !== undefined && this.#lives(client) ? client : this.#begin(nodeId);
      if (client !== undefined && !client.full) this.#step(client);
      clock.setTimer(random.int(60), next);
    };
    clock.setTimer(random.int(100), next);
  }

  #lives(client: Client): boolean {
    const { running, life } = this.#bed.node(client.node);
    return !client.over && running !== undefined && life === client.life;
  }

  #begin(nodeId: number): Client | undefined {
    const node = this.#bed.node(nodeId);
    const ranges = node.running?.backend;
    if (ranges === undefined) return undefined;
    const backend = openBackend(ranges, node.clock);
    const name = `${nodeId}.${this.figures.streams++}`;
    const stream = new WatchStream(
      { backend, headers: new Headers(backend), clock: node.clock, caller: { principal: undefined } },
      LIMITS,
      {
        write: (message) => this.#message(client, message),
        unread: () => 0,
        end: (error) => this.#end(client, error),
      },
      () => {},
    );
    const client: Client = {
      ...{
        name,
        node: nodeId,
        life: node.life,
        stream,
        creating: [],
        watches: new Map(),
        progress: 0,
        over: false,
        full: false,
      },
    };
    this.#clients.push(client);
    return client;
  }

  #step(client: Client): void {
    const { random } = this.#bed;
    const what = random.int(8);
    const { size } = client.watches;
    const isEnough = size + client.creating.length >= WATCHES_MAX;
    if (isEnough && size === 0) return;
    if (isEnough || (what === 0 && size > 0)) {
      this.#cancel(client, [...client.watches.keys()][random.int(size)] ?? 0n);
    } else if (what === 1) this.#ask(client);
    else if (what === 2) this.#create(client);
    else {
      this.figures.pairs++;
      this.#create(client);
      if (!client.over) this.#ask(client);
    }
  }

  #create(client: Client): void {
    const { random } = this.#bed;
    const acknowledged = this.#acknowledged();
    const froms = [0, 1, Math.max(1, acknowledged - random.int(10)), acknowledged + 1 + random.int(3)];
    const from = froms[random.int(froms.length)] ?? 0;
    const span = SPANS[random.int(SPANS.length)] ?? SPANS[0];
    const noDelete = random.int(4) === 0;
    client.creating.push(from);
    this.#see({ type: 'create', stream: client.name, from, ...span, noDelete });
    const value = pb.WatchCreateRequest.fromPartial({
      ...{ key: Buffer.from(span.start), startRevision: BigInt(from), fragment: random.int(2) === 0 },
      ...(span.end !== undefined && { rangeEnd: Buffer.from(span.end) }),
      ...{ progressNotify: random.int(2) === 0, filters: noDelete ? [1] : [], prevKv: random.int(4) === 0 },
    });
    client.stream.onRequest({ requestUnion: { $case: 'createRequest', value } });
  }

  #cancel(client: Client, watchId: bigint): void {
    client.watches.delete(watchId);
    client.stream.onRequest({ requestUnion: { $case: 'cancelRequest', value: { watchId } } });
  }

  #ask(client: Client): void {
    this.#see({ type: 'ask', stream: client.name, acknowledged: this.#acknowledged() });
    client.stream.onRequest({ requestUnion: { $case: 'progressRequest', value: {} } });
  }

  #message(client: Client, { watchId, header, created, canceled, fragment, events }: pb.WatchResponse): boolean {
    const revision = header?.revision ?? 0;
    if (created) {
      const from = client.creating.shift() ?? 0;
      if (!canceled) client.watches.set(watchId, from);
    }
    if (watchId === -1n && !created) {
      this.figures.answers++;
      client.progress = revision;
    } else if (!created && !canceled && events.length === 0) this.figures['watches told of progress']++;
    if (fragment) this.figures.fragments++;
    const changes = events.map(({ type, kv }): Change => {
      const [key, value] = [textOf(kv?.key ?? Buffer.of()), textOf(kv?.value ?? Buffer.of())];
      return type === 0
        ? { revision: kv?.modRevision ?? 0, key, kind: 'put', value }
        : { revision: kv?.modRevision ?? 0, key, kind: 'delete' };
    });
    const message = { watchId: Number(watchId), revision, created, canceled, fragment, events: changes };
    this.#see({ type: 'message', stream: client.name, message });
    return !this.#fills(client);
  }

  /** Now and then a client reads nothing for a while. */
  #fills(client: Client): boolean {
    const { random } = this.#bed;
    if (client.full) return true;
    if (random.int(15) > 0) return false;
    client.full = true;
    this.figures['full streams']++;
    this.#bed.node(client.node).clock.setTimer(1 + random.int(300), () => {
      client.full = false;
      client.stream.onDrain();
    });
    return true;
  }

  #end(client: Client, error: ServiceError | undefined): void {
    client.over = true;
    if (error !== undefined) this.#faults.push(`SL1: the stream ${client.name} ended with ${error.code}`);
  }

  #see(event: WatchStreamEvent): void {
    for (const { property, detail } of this.#check.observe(event)) this.#faults.push(`SL1 ${property}: ${detail}`);
  }

  /** Requests progress from every stream that is left. Watches of future revisions would delay the answer. */
  askAll(): void {
    for (const client of this.#clients) {
      if (!this.#lives(client)) continue;
      for (const [id, from] of client.watches) if (from > this.#acknowledged()) this.#cancel(client, id);
      if (client.watches.size === 0 || client.creating.length > 0) continue;
      this.#owed.set(client, this.#acknowledged());
      client.progress = 0;
      this.#ask(client);
    }
  }

  /** Whether all requests of `askAll` have been answered (SL2). */
  get answered(): boolean {
    return this.#late().length === 0;
  }

  #late(): readonly (readonly [Client, number])[] {
    return [...this.#owed].filter(([client, owed]) => this.#lives(client) && client.progress < owed);
  }

  check(truth: Truth): readonly string[] {
    for (const { type, kv } of truth.events) {
      const key = textOf(kv.key);
      const change = { type: 'changed', revision: kv.modRevision, key } as const;
      this.#see(type === 'put' ? { ...change, kind: 'put', value: textOf(kv.value) } : { ...change, kind: 'delete' });
    }
    const found = this.#check.finish().map(({ property, detail }) => `SL1 ${property}: ${detail}`);
    const unanswered = this.#late().map(
      ([{ name, progress }, owed]) => `SL2: ${name} has progress to ${progress} of ${owed}`,
    );
    return [...this.#faults, ...found, ...unanswered];
  }
}
