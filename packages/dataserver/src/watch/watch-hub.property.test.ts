import { nodeClock, SeededRandom, silentLogger } from '@remora/base';
import type { Command, KvEvent, WatchCreate, WatchMessage } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { CONF, DESCRIPTOR, del, HISTORY, memoryEngine, put, range } from '../../test/support/state-bed.ts';
import { HistoryCollector } from '../range/history-collector.ts';
import { EntryRun } from '../state/entry-run.ts';
import { RangeState } from '../state/range-state.ts';
import { WatchHub } from './watch-hub.ts';
import type { WatchStream } from './watch-stream.ts';

const KEYS = ['a', 'b', 'ba', 'c', 'd'];
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

interface Watching {
  readonly create: WatchCreate;
  readonly seen: string[];
  /** Nothing at or below is still to come. */
  upTo: number;
  last: number;
  from: number;
  ended: string | undefined;
  created: boolean;
  /** The last question that it answered. */
  answered: number;
}

/** A stream that takes `room` messages before it says stop, and drains when it is told to. */
class SlowStream {
  readonly #hub: WatchHub;
  readonly #random: SeededRandom;
  /** By question. */
  readonly #closedAt: number[] = [0];
  readonly stream: WatchStream;
  readonly watching = new Map<number, Watching>();
  readonly faults: string[] = [];
  #room = 0;
  #refused = 0;

  constructor(hub: WatchHub, random: SeededRandom) {
    this.#hub = hub;
    this.#random = random;
    this.stream = this.#hub.openStream({ send: (message) => this.#take(message) });
  }

  create(create: WatchCreate): void {
    this.watching.set(create.watchId, {
      create,
      seen: [],
      upTo: 0,
      last: 0,
      from: create.startRevision,
      ended: undefined,
      created: false,
      answered: 0,
    });
    this.stream.create(create);
  }

  /** Asks how far its watches are, when `closed` is closed; returns the question. */
  ask(closed: number): number {
    this.stream.progress(this.#closedAt.push(closed) - 1);
    return this.#closedAt.length - 1;
  }

  drain(room = this.#random.int(4)): void {
    this.#room = room;
    this.#refused = 0;
    this.stream.drained();
  }

  /** Takes one more message, and says stop: by a watch that is created for that. */
  fill(): void {
    this.#room = 0;
    this.stream.create({ ...createOfD(0), watchId: 99 });
  }

  #take(message: WatchMessage): boolean {
    // After the first refusal what the scans under way found may follow, no more.
    if (this.#room < 0 && ++this.#refused > 5) this.faults.push('a blocked stream was written to again and again');
    const watching = this.watching.get(message.watchId);
    if (watching !== undefined) this.#note(watching, message);
    return this.#room-- > 0;
  }

  #note(watching: Watching, message: WatchMessage): void {
    if (message.kind === 'created') {
      watching.created = true;
      if (watching.from === 0) watching.from = message.revision + 1;
    } else if (message.kind === 'ended') watching.ended = message.code;
    else {
      for (const event of message.kind === 'events' ? message.events : []) {
        if (event.kv.modRevision <= watching.upTo) this.faults.push(`${textOf(event)} is late`);
        if (event.kv.modRevision > message.revision) this.faults.push(`${textOf(event)} is early`);
        if (event.kv.modRevision < watching.last) this.faults.push(`${textOf(event)} is out of order`);
        watching.last = event.kv.modRevision;
        watching.seen.push(textOf(event));
      }
      watching.upTo = Math.max(watching.upTo, message.revision);
      if (message.kind === 'progress') this.#answered(watching, message);
    }
  }

  /** An answer names what was closed when it was asked for, and nothing that is still to come (W6). */
  #answered(watching: Watching, { question, revision }: Extract<WatchMessage, { kind: 'progress' }>): void {
    if (revision < (this.#closedAt[question] ?? 0))
      this.faults.push(`${revision} does not answer question ${question}`);
    watching.answered = question;
  }
}

function textOf({ type, kv, prev }: KvEvent): string {
  const before = prev === undefined ? '' : ` was ${prev.modRevision}`;
  return `${kv.modRevision}:${type}:${Buffer.from(kv.key)}=${Buffer.from(kv.value)}${before}`;
}

function keyOf(text: string): string {
  return text.split(':')[2]?.split('=')[0] ?? '';
}

function keyAndValueOf(text: string): string {
  return text.split(':')[2] ?? '';
}

function byRevisionAndKey(a: KvEvent, b: KvEvent): number {
  return a.kv.modRevision - b.kv.modRevision || Buffer.compare(a.kv.key, b.kv.key);
}

class HubBed {
  readonly random: SeededRandom;
  readonly engine = memoryEngine();
  readonly events: KvEvent[] = [];
  readonly state: RangeState;
  readonly hub: WatchHub;
  readonly collector: HistoryCollector;
  readonly streams: SlowStream[] = [];
  /** What was closed, as far as a test says. */
  closed = 0;
  #ids = 0;
  /** The last revision that was given out. */
  #drawn = 1;
  /** Prepared transactions; `revision`: drawn for the commit, 0 before that. */
  readonly #open: { readonly txnId: string; revision: number }[] = [];

  constructor(seed: number, ringBytesMax: number) {
    this.random = new SeededRandom(seed);
    this.state = new RangeState(this.engine, {
      descriptor: { ...DESCRIPTOR, revisionSource: 'master' },
      conf: CONF,
      effects: {
        onEvents: (revision, events) => {
          for (const event of events) this.events.push(event);
          this.hub.publish(revision, events);
        },
        onNotice() {},
        onHoldDelayed() {},
        onLeaseGranted() {},
        onLeaseEnded() {},
        onSplit() {},
        onSealed() {},
        source: () => this.state,
        onMerged() {},
      },
    });
    this.hub = new WatchHub(this.engine, this.state, {
      ringBytesMax: () => ringBytesMax,
      clock: nodeClock(),
      logger: silentLogger,
      turnEventsMax: 1 + (seed % 7),
      closed: () => this.closedNow,
      earliestCommit: () => this.state.transactions.earliestCommit(),
    });
    this.collector = new HistoryCollector(this.engine, HISTORY, { clock: nodeClock(), logger: silentLogger });
  }

  async write(commands: readonly Command[]): Promise<void> {
    const batch = {
      rangeTimeMs: 1,
      wallMs: 1,
      epoch: DESCRIPTOR.epoch,
      block: { first: this.draw(commands.length), count: commands.length },
      commands: commands.map((command) => ({ requestId: '', deadlineMs: 0, command })),
    };
    await EntryRun.begin(this.state, { index: this.state.applied.index + 1, term: 1 }, batch, {}).apply();
    this.hub.flush();
  }

  /** Revisions with gaps, as other ranges draw some too; the first of them. */
  draw(count: number): number {
    const first = this.#drawn + 1 + this.random.int(3);
    this.#drawn = first + count - 1;
    return first;
  }

  /** Prepares a transaction over several ranges, draws a revision for one, or ends one that has one. */
  transact(): Promise<void> {
    const at = this.random.int(this.#open.length + 1);
    const open = this.#open[at];
    if (open === undefined) return this.prepare(this.key());
    if (open.revision === 0) {
      open.revision = this.draw(1);
      return Promise.resolve();
    }
    this.#open.splice(at, 1);
    return this.write([this.#resolve(open)]);
  }

  /** One that puts a key. */
  prepare(key: string): Promise<void> {
    const txnId = `t${++this.#ids}`;
    this.#open.push({ txnId, revision: 0 });
    const ops = [put(key, txnId)].map((op) => ({ number: 0, branch: 0, op }));
    const primaryKey = Buffer.from('a');
    const prepare = { txnId, part: 1, requestId: '', primaryKey, expiresMs: 9, compares: [], ops };
    return this.write([{ type: 'txnPrepare', ...prepare }]);
  }

  async endAll(): Promise<void> {
    for (const open of this.#open.splice(0)) {
      if (open.revision === 0) open.revision = this.draw(1);
      await this.write([this.#resolve(open)]);
    }
  }

  #resolve({ txnId, revision }: { readonly txnId: string; readonly revision: number }): Command {
    const span = { start: Buffer.from([3]), end: Buffer.from([4]) };
    const aborts = this.random.int(4) === 0;
    const resolution = aborts ? ({ type: 'abort' } as const) : ({ type: 'commit', revision, branches: [0] } as const);
    return { type: 'txnResolve', txnId, part: 1, span, requestId: '', resolution };
  }

  /** As a session does, once it has closed what it could. */
  ask(stream: SlowStream | undefined): number {
    return stream?.ask(this.closedNow) ?? 0;
  }

  get closedNow(): number {
    return Math.max(this.closed, Math.min(this.state.revision, this.state.transactions.earliestCommit() - 1));
  }

  key(): string {
    return KEYS[this.random.int(KEYS.length)] ?? 'a';
  }

  command(): Command {
    const kind = this.random.int(8);
    if (kind === 0) return { type: 'kv', op: { ...del(this.key(), this.key()), type: 'delete' } as never };
    if (kind === 1)
      return {
        type: 'txn',
        txn: { compare: [], success: [put('a', 'x'), put('ba', 'y'), range('a', 'z')], failure: [] },
      };
    return { type: 'kv', op: put(this.key(), `v${this.state.revision}`) };
  }

  watch(): void {
    const key = this.key();
    const start = Buffer.from(key);
    const ends = [Buffer.concat([start, Buffer.from([0])]), Buffer.from('c'), Buffer.alloc(0)];
    const back = this.random.int(30);
    const stream = this.streams[this.random.int(this.streams.length)];
    stream?.create({
      kind: 'create',
      watchId: ++this.#ids,
      rangeId: 2,
      epoch: DESCRIPTOR.epoch,
      span: { start, end: ends[this.random.int(3)] ?? start },
      // Also from now, and from revisions that are still to come.
      startRevision: back === 0 ? 0 : Math.max(1, this.state.revision + 5 - back),
      noPut: this.random.int(5) === 0,
      noDelete: this.random.int(5) === 0,
      prevKv: this.random.int(2) === 0,
    });
  }

  /** What the watch must have seen in the end. */
  want({ create, from }: Watching): readonly KvEvent[] {
    const { start, end } = create.span;
    return this.events.filter(
      ({ type, kv }) =>
        kv.modRevision >= from &&
        Buffer.compare(kv.key, start) >= 0 &&
        (end.length === 0 || Buffer.compare(kv.key, end) < 0) &&
        !(type === 'put' ? create.noPut : create.noDelete),
    );
  }
}

/** A watch of keys that nobody changes. */
function createOfD(startRevision: number): WatchCreate {
  return {
    ...{ kind: 'create', watchId: 1, rangeId: 2, epoch: DESCRIPTOR.epoch, startRevision },
    ...{ span: { start: Buffer.from('d'), end: Buffer.from('e') }, noPut: false, noDelete: false, prevKv: false },
  };
}

async function play(bed: HubBed, transactions: boolean): Promise<void> {
  for (let i = 0; i < 3; i++) bed.streams.push(new SlowStream(bed.hub, bed.random));
  for (let step = 0; step < 150; step++) {
    const kind = bed.random.int(10);
    if (transactions && bed.random.int(3) === 0) await bed.transact();
    if (kind < 4) {
      const writing = bed.write(Array.from({ length: 1 + bed.random.int(3) }, () => bed.command()));
      // Watches come and streams drain while an entry waits for cold data, too.
      if (bed.random.int(2) === 0) bed.watch();
      for (const stream of bed.streams) if (bed.random.int(3) === 0) stream.drain();
      await writing;
    } else if (kind < 6) bed.watch();
    else if (kind < 8) bed.streams[bed.random.int(3)]?.drain();
    else if (kind === 8) bed.ask(bed.streams[bed.random.int(3)]);
    else if (bed.random.int(3) === 0) {
      await bed.write([{ type: 'compact', revision: Math.max(1, bed.state.revision - bed.random.int(10)) }]);
      bed.collector.collect(bed.state.compactRevision);
    }
    if (bed.random.int(3) === 0) await turn();
  }
  await bed.endAll();
  await drainAll(bed, 400);
  const last = bed.streams.map((stream) => bed.ask(stream));
  await drainAll(bed, 100);
  for (const [i, stream] of bed.streams.entries()) {
    const owing = [...stream.watching.values()].filter(({ ended }) => ended === undefined);
    expect(owing.map(({ answered }) => answered)).toEqual(owing.map(() => last[i]));
  }
}

async function drainAll(bed: HubBed, times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    for (const stream of bed.streams) stream.drain();
    await turn();
  }
}

describe('watches', () => {
  test('of keys that rest are told at a compaction how far they are, and go on behind that', async () => {
    const bed = new HubBed(1, 1_000_000);
    const stream = new SlowStream(bed.hub, bed.random);
    stream.drain();
    stream.create(createOfD(0));
    for (let i = 0; i < 5; i++) await bed.write([{ type: 'kv', op: put('a', `${i}`) } as never]);
    await bed.write([{ type: 'compact', revision: bed.state.revision }]);
    const told = stream.watching.get(1)?.upTo ?? 0;
    expect(told).toBe(bed.state.revision);
    const elsewhere = new SlowStream(bed.hub, bed.random);
    elsewhere.create(createOfD(told + 1));
    expect(elsewhere.watching.get(1)).toMatchObject({ created: true, ended: undefined });
  });

  test('from now on are told nothing that was there before, though it is not told yet (W7)', async () => {
    const bed = new HubBed(1, 1_000_000);
    await bed.prepare('a');
    await bed.write([{ type: 'kv', op: put('d', 'before') } as never]);
    bed.closed = bed.state.revision;
    const stream = new SlowStream(bed.hub, bed.random);
    stream.drain(10);
    stream.create(createOfD(0));
    await bed.write([{ type: 'kv', op: put('d', 'after') } as never]);
    await bed.endAll();
    expect(stream.watching.get(1)?.from).toBe(bed.closed + 1);
    expect(stream.watching.get(1)?.seen.map(keyAndValueOf)).toEqual(['d=after']);
  });

  test('are told what a transaction commits that was prepared before a merge, below what came with the merge (W4)', async () => {
    const bed = new HubBed(2, 1_000_000);
    const stream = new SlowStream(bed.hub, bed.random);
    stream.drain(10);
    stream.create(createOfD(0));
    await bed.prepare('d');
    bed.state.revision += 100; // the source's
    bed.hub.flush();
    bed.hub.reset();
    await bed.endAll();
    for (let i = 0; i < 20; i++) await turn();
    expect(bed.events.map(({ kv }) => kv.modRevision < bed.state.revision)).toEqual([true]);
    expect(stream.watching.get(1)?.seen.map(keyAndValueOf)).toEqual(['d=t1']);
  });

  test('answer a question with what was closed for it, or not at all: a merge may bring keys of which less is (W6)', async () => {
    for (const closedLater of [90, 20]) {
      const bed = new HubBed(1, 0);
      for (let i = 0; i < 5; i++) await bed.write([{ type: 'kv', op: put('a', `${i}`) } as never]);
      const stream = new SlowStream(bed.hub, bed.random);
      stream.drain(10);
      stream.create(createOfD(2)); // history is read for it
      bed.closed = 90;
      const question = bed.ask(stream);
      bed.closed = closedLater;
      for (let i = 0; i < 20; i++) await turn();
      const watching = stream.watching.get(1);
      expect([watching?.upTo, watching?.answered]).toEqual([closedLater, closedLater === 90 ? question : 0]);
      expect(stream.faults).toEqual([]);
    }
  });

  describe('that rest, and cannot say at once how far they are, say it when they can (W6):', () => {
    const cases: readonly { name: string; ask: (bed: HubBed, stream: SlowStream) => unknown }[] = [
      { name: 'when they are asked', ask: (bed, stream) => bed.ask(stream) },
      {
        name: 'at a compaction',
        ask: (bed) => bed.write([{ type: 'compact', revision: bed.state.revision }]),
      },
    ];

    test.each(cases)('$name while history is read for them', async ({ ask }) => {
      const bed = new HubBed(1, 0);
      for (let i = 0; i < 5; i++) await bed.write([{ type: 'kv', op: put('a', `${i}`) } as never]);
      const stream = new SlowStream(bed.hub, bed.random);
      stream.drain(10);
      stream.create(createOfD(2));
      await ask(bed, stream);
      for (let i = 0; i < 20; i++) {
        await turn();
        stream.drain();
      }
      expect(stream.watching.get(1)?.upTo).toBe(bed.state.revision);
    });

    test.each(cases)('$name while their stream is behind', async ({ ask }) => {
      const bed = new HubBed(1, 1_000_000);
      const stream = new SlowStream(bed.hub, bed.random);
      stream.drain();
      stream.create(createOfD(0));
      await bed.write([{ type: 'kv', op: put('a', 'x') } as never]);
      stream.fill();
      await ask(bed, stream);
      stream.drain();
      expect(stream.watching.get(1)?.upTo).toBe(bed.state.revision);
    });
  });

  test.each(Array.from({ length: 60 }, (_, i) => i + 1))(
    'seed %i: each event exactly once and in order, or an explicit end',
    async (seed) => {
      const bed = new HubBed(seed, [0, 700, 5_000, 1_000_000][seed % 4] ?? 0);
      await play(bed, seed % 8 >= 4);
      for (const stream of bed.streams) {
        expect(stream.faults).toEqual([]);
        for (const watching of stream.watching.values()) {
          const { create, ended, from } = watching;
          if (ended !== undefined) {
            expect(ended).toBe('COMPACTED');
            expect(from).toBeLessThan(bed.state.compactRevision);
            continue;
          }
          expect(watching.created).toBe(true);
          // Within a revision the order is that of the operations, or of the keys when it comes from history.
          const want = bed.want(watching).toSorted(byRevisionAndKey);
          watching.seen.sort(
            (a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10) || (keyOf(a) < keyOf(b) ? -1 : 1),
          );
          const plain = (text: string): string => text.replace(/ was \d+$/, '');
          expect(watching.seen.map(plain)).toEqual(want.map(textOf).map(plain));
          for (const [i, text] of watching.seen.entries()) {
            const event = want[i];
            if (event === undefined) continue;
            // A predecessor that was compacted away may be missing; another one is never shown.
            const missing = text === plain(text);
            if (!create.prevKv) expect(missing).toBe(true);
            else if (!missing || (event.prev?.modRevision ?? 0) >= bed.state.compactRevision)
              expect(text).toBe(textOf(event));
          }
        }
      }
      expect(bed.hub.size).toBe(bed.streams.reduce((sum, stream) => sum + stream.stream.watchers.size, 0));
    },
  );
});
