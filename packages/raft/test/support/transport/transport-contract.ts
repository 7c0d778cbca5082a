/** What every `Transport` promises; each implementation runs it from its own test file. */
import { nodeClock, sleep } from '@remora/base';
import { afterEach, describe, expect, test } from 'vitest';
import type { Message } from '../../../src/core/types.ts';
import type {
  GroupMessage,
  HeartbeatFrame,
  NodeId,
  SnapshotHeader,
  SnapshotReceiver,
  Transport,
  TransportHandlers,
} from '../../../src/multi/ports.ts';
import { SNAPSHOT_TRANSFER_DEFAULTS } from '../../../src/multi/transport/snapshot-transfer.ts';

/** Some nodes that can reach each other through the transport under test. */
export interface TransportBed {
  /** Starts a node, or starts it again after `stop`. */
  start(node: NodeId, handlers: TransportHandlers): Promise<Transport>;
  stop(node: NodeId): Promise<void>;
  close(): Promise<void>;
}

const clock = nodeClock();

/** Waits until `met` holds; fails the test with `what` when it does not come true in time. */
export async function until(what: string, met: () => boolean, timeoutMs = 10_000): Promise<void> {
  const deadline = clock.monotonicMs() + timeoutMs;
  while (!met()) {
    if (clock.monotonicMs() > deadline) throw new Error(`timed out waiting until ${what}`);
    await sleep(clock, 2);
  }
}

/** Keeps what arrives. */
export class Recorder implements TransportHandlers {
  readonly messages: { readonly from: NodeId; readonly item: GroupMessage }[] = [];
  readonly heartbeats: { readonly from: NodeId; readonly frame: HeartbeatFrame }[] = [];
  readonly unreachable: NodeId[] = [];
  readonly gone: NodeId[] = [];
  readonly snapshots: { readonly from: NodeId; readonly header: SnapshotHeader; readonly chunks: Uint8Array[] }[] = [];
  readonly aborts: string[] = [];
  installed = 0;
  chunkDelayMs = 0;
  refuseSnapshots = false;
  chunksBusy = 0;
  chunksBusyMost = 0;

  onMessages(from: NodeId, messages: readonly GroupMessage[]): void {
    for (const item of messages) this.messages.push({ from, item });
  }

  onHeartbeat(from: NodeId, frame: HeartbeatFrame): void {
    this.heartbeats.push({ from, frame });
  }

  async onSnapshot(from: NodeId, header: SnapshotHeader): Promise<SnapshotReceiver> {
    if (this.refuseSnapshots) throw new Error('not wanted');
    const chunks: Uint8Array[] = [];
    this.snapshots.push({ from, header, chunks });
    return {
      chunk: async (bytes) => {
        this.chunksBusyMost = Math.max(this.chunksBusyMost, ++this.chunksBusy);
        if (this.chunkDelayMs > 0) await sleep(clock, this.chunkDelayMs);
        chunks.push(bytes);
        this.chunksBusy--;
      },
      finish: async () => {
        this.installed++;
      },
      abort: (reason) => {
        this.aborts.push(reason);
      },
    };
  }

  onUnreachable(node: NodeId): void {
    this.unreachable.push(node);
  }

  onGone(node: NodeId): void {
    this.gone.push(node);
  }

  /** The commit indexes of the heartbeats received, which the tests use as sequence numbers. */
  sequence(): number[] {
    return this.messages.map(({ item }) => (item.message.type === 'heartbeat' ? item.message.commit : -1));
  }
}

export function heartbeat(sequence: number): GroupMessage {
  const message: Message = { type: 'heartbeat', from: 11, to: 12, term: 1, commit: sequence, readContext: 0 };
  return { groupId: 7, message };
}

export const SNAPSHOT_HEADER: SnapshotHeader = {
  groupId: 7,
  from: 11,
  to: 12,
  term: 3,
  meta: {
    index: 90,
    term: 2,
    conf: { voters: [11, 12], votersOutgoing: [], learners: [13], learnersNext: [], autoLeave: false },
  },
};

async function* chunksOf(count: number, bytes: number, pulled?: () => void): AsyncIterable<Uint8Array> {
  for (let i = 0; i < count; i++) {
    pulled?.();
    yield Buffer.alloc(bytes, i + 1);
  }
}

const never = new AbortController().signal;

export function transportContract(name: string, makeBed: () => Promise<TransportBed>): void {
  describe(`transport contract: ${name}`, () => {
    let bed: TransportBed | undefined;
    afterEach(async () => {
      await bed?.close();
      bed = undefined;
    });

    async function pair() {
      bed = await makeBed();
      const [one, two] = [new Recorder(), new Recorder()];
      return { bed, one, two, a: await bed.start(1, one), b: await bed.start(2, two) };
    }

    test('frames arrive in order, whole, and name the node they come from', async () => {
      const { a, b, one, two } = await pair();
      for (let i = 0; i < 200; i++) a.send(2, [heartbeat(2 * i), heartbeat(2 * i + 1)]);
      await until('all frames are there', () => two.messages.length === 400);
      expect(two.sequence()).toEqual(Array.from({ length: 400 }, (_, i) => i));
      expect(new Set(two.messages.map(({ from }) => from))).toEqual(new Set([1]));
      b.send(1, [heartbeat(5)]);
      await until('the way back works', () => one.messages.length === 1);
      expect(one.messages[0]).toEqual({ from: 2, item: heartbeat(5) });
    });

    test('entries arrive as they were sent, large and small', async () => {
      const { a, two } = await pair();
      const entries = [0, 1, 300, 2_000_000].map((size, i) => ({
        index: 101 + i,
        term: 4 + i,
        type: i === 2 ? ('conf' as const) : ('normal' as const),
        data: Buffer.alloc(size, i),
      }));
      const message: Message = {
        type: 'append',
        from: 11,
        to: 12,
        term: 9,
        prevIndex: 100,
        prevTerm: 3,
        entries,
        commit: 99,
      };
      a.send(2, [{ groupId: 2 ** 40, message }]);
      await until('the append is there', () => two.messages.length === 1);
      const received = two.messages[0]?.item.message;
      const arrived = received?.type === 'append' ? received.entries : [];
      expect(two.messages[0]?.item).toMatchObject({ groupId: 2 ** 40, message: { prevIndex: 100, commit: 99 } });
      expect(arrived.map(({ index, term, type }) => ({ index, term, type }))).toEqual(
        entries.map(({ index, term, type }) => ({ index, term, type })),
      );
      for (const [i, entry] of entries.entries())
        expect(entry.data.equals(arrived[i]?.data ?? Buffer.of(255))).toBe(true);
    });

    test('merged heartbeats and their replies arrive between the frames, in order, a kept list as the same object', async () => {
      const { a, b, one, two } = await pair();
      const groups = [2, 3, 2 ** 40];
      const frame = (sequence: number, named: readonly number[]): HeartbeatFrame => {
        return { type: 'heartbeat', bootId: 2 ** 52 + 1, sequence, groups: named };
      };
      const sent = [frame(1, groups), frame(2, groups), frame(3, [5])];
      a.send(2, [heartbeat(1)]);
      for (const item of sent) a.sendHeartbeat(2, item);
      a.send(2, [heartbeat(2)]);
      await until('all is there', () => two.messages.length === 2);
      expect(two.heartbeats).toEqual(sent.map((item) => ({ from: 1, frame: item })));
      const lists = two.heartbeats.map((item) => item.frame.type === 'heartbeat' && item.frame.groups);
      expect(lists[1]).toBe(lists[0]);
      const refused = [
        { groupId: 3, reason: 'noReplica' as const, term: 0 },
        { groupId: 2 ** 40, reason: 'notFollowing' as const, term: 8 },
      ];
      const reply: HeartbeatFrame = { type: 'reply', bootId: 2 ** 52 + 1, sequence: 2, replierBootId: 77, refused };
      b.sendHeartbeat(1, reply);
      await until('the reply is there', () => one.heartbeats.length === 1);
      expect(one.heartbeats).toEqual([{ from: 2, frame: reply }]);
    });

    test('a peer that is down is reported, costs nothing but its frames, and is found again when it is back', async () => {
      const { bed: nodes, a, one, two } = await pair();
      a.send(2, [heartbeat(1)]);
      await until('the first frame is there', () => two.messages.length === 1);
      await nodes.stop(2);
      await until('the loss is noticed', () => {
        a.send(2, [heartbeat(2)]);
        return one.unreachable.includes(2);
      });
      const reborn = new Recorder();
      await nodes.start(2, reborn);
      await until('frames arrive again', () => {
        a.send(2, [heartbeat(3)]);
        return reborn.messages.length > 0;
      });
    });

    test('frames for a node that nobody knows are dropped', async () => {
      const { a, two } = await pair();
      a.send(99, [heartbeat(1)]);
      a.send(2, [heartbeat(2)]);
      await until('the other frame is there', () => two.messages.length === 1);
      expect(two.sequence()).toEqual([2]);
    });

    test('a snapshot arrives whole, in order and one chunk at a time, at the pace of a slow receiver', async () => {
      const { a, two } = await pair();
      two.chunkDelayMs = 3;
      let pulled = 0;
      let aheadMost = 0;
      const chunks = chunksOf(60, 1000, () => {
        pulled++;
        aheadMost = Math.max(aheadMost, pulled - (two.snapshots[0]?.chunks.length ?? 0));
      });
      await a.sendSnapshot(2, SNAPSHOT_HEADER, chunks, never);
      expect(two.installed).toBe(1);
      expect(two.snapshots[0]?.from).toBe(1);
      expect(two.snapshots[0]?.header).toEqual(SNAPSHOT_HEADER);
      expect(Buffer.concat(two.snapshots[0]?.chunks ?? [])).toEqual(
        Buffer.concat(Array.from({ length: 60 }, (_, i) => Buffer.alloc(1000, i + 1))),
      );
      expect(two.chunksBusyMost).toBe(1);
      expect(aheadMost).toBeLessThanOrEqual(SNAPSHOT_TRANSFER_DEFAULTS.windowChunks + 2);
    });

    test('large pieces of a snapshot are cut to chunks of at most 64 KiB', async () => {
      const { a, two } = await pair();
      await a.sendSnapshot(2, SNAPSHOT_HEADER, chunksOf(2, 700_000), never);
      const sizes = two.snapshots[0]?.chunks.map((chunk) => chunk.length) ?? [];
      expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(1_400_000);
      expect(Math.max(...sizes)).toBeLessThanOrEqual(SNAPSHOT_TRANSFER_DEFAULTS.chunkBytes);
    });

    test('a snapshot that the receiver does not want is rejected', async () => {
      const { a, two } = await pair();
      two.refuseSnapshots = true;
      await expect(a.sendSnapshot(2, SNAPSHOT_HEADER, chunksOf(3, 10), never)).rejects.toThrow('not wanted');
    });

    test('a snapshot that is aborted, or whose source fails, is aborted at the receiver', async () => {
      const { a, two } = await pair();
      const controller = new AbortController();
      const sending = a.sendSnapshot(2, SNAPSHOT_HEADER, endless(), controller.signal);
      await until('chunks arrive', () => (two.snapshots[0]?.chunks.length ?? 0) > 2);
      controller.abort(new Error('changed my mind'));
      await expect(sending).rejects.toThrow('changed my mind');
      await until('the receiver knows', () => two.aborts.length === 1);
      await expect(a.sendSnapshot(2, SNAPSHOT_HEADER, failing(), never)).rejects.toThrow('source failed');
      await until('the receiver knows again', () => two.aborts.length === 2);
      expect(two.installed).toBe(0);
    });

    test('a snapshot fails when its receiver goes away', async () => {
      const { bed: nodes, a, two } = await pair();
      const sending = a.sendSnapshot(2, SNAPSHOT_HEADER, endless(), never);
      const failed = expect(sending).rejects.toThrow();
      await until('chunks arrive', () => (two.snapshots[0]?.chunks.length ?? 0) > 2);
      await nodes.stop(2);
      await failed;
    });
  });
}

async function* endless(): AsyncIterable<Uint8Array> {
  for (;;) yield Buffer.alloc(100);
}

async function* failing(): AsyncIterable<Uint8Array> {
  yield Buffer.alloc(100);
  throw new Error('source failed');
}
