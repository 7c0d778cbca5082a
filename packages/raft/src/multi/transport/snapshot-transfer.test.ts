import { SeededRandom } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { describe, expect, test } from 'vitest';
import { type Sending, SnapshotBed, testChunks, testSource } from '../../../test/support/transport/snapshot-bed.ts';
import { SNAPSHOT_HEADER } from '../../../test/support/transport/transport-contract.ts';
import type { TappedSnapshotMessage } from '../../testing/local-snapshots.ts';
import { ChunkWindow } from './snapshot-chunks.ts';
import { IncomingSnapshots } from './snapshot-incoming.ts';
import {
  decodeReceiverMessage,
  decodeSenderMessage,
  encodeReceiverMessage,
  encodeSenderMessage,
  type ReceiverMessage,
  type SenderMessage,
} from './snapshot-messages.ts';
import { type SnapshotLinkEvents, sendOverLinks } from './snapshot-outgoing.ts';
import {
  isSnapshotBusy,
  newTraffic,
  SNAPSHOT_TRANSFER_DEFAULTS,
  snapshotBusy,
  snapshotTransferOptions,
} from './snapshot-transfer.ts';
import { WireError } from './wire-bytes.ts';

/** Breaks the stream at the first message for which `which` holds. */
function breakOnce(bed: SnapshotBed, which: (tapped: TappedSnapshotMessage) => boolean): void {
  let broken = false;
  bed.network.tapSnapshots((tapped) => {
    if (broken || !which(tapped)) return 'pass';
    broken = true;
    return 'break';
  });
}

async function ended(bed: SnapshotBed, sending: Sending): Promise<Sending['outcome']> {
  await bed.until('the transfer ends', () => sending.outcome !== undefined);
  return sending.outcome;
}

function message(outcome: Sending['outcome']): string {
  return outcome instanceof Error ? outcome.message : String(outcome);
}

describe('a snapshot transfer', () => {
  test.each<{ name: string; which: (tapped: TappedSnapshotMessage) => boolean }>([
    { name: 'at a chunk', which: ({ message: m }) => m.type === 'chunk' && m.number === 5 },
    { name: 'at an acknowledgement', which: ({ message: m }) => m.type === 'stored' && m.stored === 5 },
    { name: 'at the end of the chunks', which: ({ message: m }) => m.type === 'finish' },
  ])(
    'that breaks $name goes on there: each chunk arrives once, the source is read once (O2, O3, I1)',
    async ({ which }) => {
      const bed = new SnapshotBed(1);
      breakOnce(bed, which);
      const source = testSource(20);
      const sending = bed.send(source.chunks);
      expect(await ended(bed, sending)).toBe('installed');
      expect(sending.resumed).toBe(1);
      expect(bed.receiver.snapshots).toHaveLength(1);
      expect(bed.receiver.snapshots[0]?.chunks).toEqual(testChunks(20));
      expect(source.pulled).toBe(20);
      expect(bed.receiver.finishes).toBe(1);
    },
  );

  test('whose last answer is lost learns that the snapshot is installed, and it is installed once (I1, I3)', async () => {
    const bed = new SnapshotBed(1);
    breakOnce(bed, ({ message: m }) => m.type === 'installed');
    const sending = bed.send(testSource(3).chunks);
    expect(await ended(bed, sending)).toBe('installed');
    expect(bed.receiver.finishes).toBe(1);
    expect(bed.receiver.aborts).toEqual([]);
  });

  test('that breaks while it is installed waits for that, however long (I3)', async () => {
    const bed = new SnapshotBed(1);
    bed.receiver.delayMs = () => (bed.receiver.finishes > 0 ? 20_000 : 0);
    const sending = bed.send(testSource(3).chunks);
    await bed.until('it is being installed', () => bed.receiver.finishes === 1);
    bed.network.breakSnapshots();
    expect(await ended(bed, sending)).toBe('installed');
    expect(bed.receiver.finishes).toBe(1);
  });

  test('to a receiver that was restarted fails and says so: nothing is installed', async () => {
    const bed = new SnapshotBed(1);
    bed.receiver.delayMs = () => 10;
    const sending = bed.send(testSource(50).chunks);
    await bed.until('some is there', () => (bed.receiver.snapshots[0]?.chunks.length ?? 0) > 5);
    await bed.restartReceiver();
    expect(message(await ended(bed, sending))).toContain('does not know the transfer');
    expect(bed.receiver.installed).toBe(0);
    expect(bed.receiver.aborts).toHaveLength(1);
  });

  test('that cannot be resumed in time ends on both sides (O3, I3)', async () => {
    const bed = new SnapshotBed(1);
    bed.receiver.delayMs = () => 10;
    const sending = bed.send(testSource(50).chunks);
    await bed.until('some is there', () => (bed.receiver.snapshots[0]?.chunks.length ?? 0) > 5);
    bed.network.setLink({ from: 1, to: 2 }, { blocked: true });
    await bed.run(900);
    expect(sending.outcome).toBeUndefined();
    expect(bed.receiver.aborts).toEqual([]);
    expect(message(await ended(bed, sending))).toContain('could not be resumed in time');
    await bed.until('the receiver is told', () => bed.receiver.aborts.length === 1);
    expect(bed.network.snapshotTraffic).toMatchObject({ sendBuffered: 0, receiveBuffered: 0 });
  });

  test('is refused as busy before its source is read, and the same one can be offered again (O2)', async () => {
    const bed = new SnapshotBed(1);
    const { receiver } = bed;
    const take = receiver.onSnapshot.bind(receiver);
    receiver.onSnapshot = async () => {
      throw snapshotBusy('no place');
    };
    const source = testSource(5);
    expect(isSnapshotBusy(await ended(bed, bed.send(source.chunks)))).toBe(true);
    expect(source.pulled).toBe(0);
    receiver.onSnapshot = take;
    expect(await ended(bed, bed.send(source.chunks))).toBe('installed');
  });

  test('that its sender gives up is aborted at the receiver at once (O5)', async () => {
    const bed = new SnapshotBed(1);
    bed.receiver.delayMs = () => 10;
    const controller = new AbortController();
    const sending = bed.send(testSource(50).chunks, controller.signal);
    await bed.until('some is there', () => (bed.receiver.snapshots[0]?.chunks.length ?? 0) > 5);
    controller.abort(new Error('changed my mind'));
    await bed.run(20);
    expect(message(sending.outcome)).toBe('changed my mind');
    expect(bed.receiver.aborts).toEqual(['changed my mind']);
  });

  test('keeps no more in memory than the window, on either side, when the receiver is slow (W1, I4)', async () => {
    const bed = new SnapshotBed(1, { windowChunks: 3 });
    bed.receiver.delayMs = () => 50;
    const sending = bed.send(chunksOfSize(40, 64));
    expect(await ended(bed, sending)).toBe('installed');
    const { sendBufferedMost, receiveBufferedMost } = bed.network.snapshotTraffic;
    expect(sendBufferedMost).toBeGreaterThan(2 * 64);
    expect(sendBufferedMost).toBeLessThanOrEqual(3 * (64 + 7));
    expect(receiveBufferedMost).toBeGreaterThan(64);
    expect(receiveBufferedMost).toBeLessThanOrEqual(3 * 64);
  });
});

async function* chunksOfSize(count: number, bytes: number): AsyncIterable<Uint8Array> {
  for (let n = 0; n < count; n++) yield Buffer.alloc(bytes, n);
}

describe('the receiving end', () => {
  function endpoint(windowChunks = 4) {
    const clock = new ManualClock();
    const chunks: string[] = [];
    const aborts: string[] = [];
    let free: () => void = () => undefined;
    const gates: Promise<void>[] = [];
    const transfers = new IncomingSnapshots({
      clock,
      options: snapshotTransferOptions({ windowChunks }),
      traffic: newTraffic(),
      onSnapshot: async () => ({
        chunk: async (bytes) => {
          await gates[0];
          chunks.push(Buffer.from(bytes).toString());
        },
        finish: async () => undefined,
        abort: (reason) => void aborts.push(reason),
      }),
    });
    const hold = () => {
      gates[0] = new Promise((resolve) => {
        free = resolve;
      });
    };
    return { clock, chunks, aborts, transfers, hold, release: () => free() };
  }

  function stream(transfers: IncomingSnapshots) {
    const answers: ReceiverMessage[] = [];
    const ends: string[] = [];
    const incoming = transfers.accept(1, {
      send: (bytes) => void answers.push(decodeReceiverMessage(bytes)),
      end: (reason) => void ends.push(reason),
    });
    const say = (sent: SenderMessage) => incoming.message(encodeSenderMessage(sent));
    return { answers, ends, say, broken: () => incoming.broken() };
  }

  const open = (attempt: number, id = '00000000000000aa'): SenderMessage => {
    return { type: 'open', id, attempt, header: SNAPSHOT_HEADER };
  };
  const chunk = (number: number, text: string): SenderMessage => ({ type: 'chunk', number, bytes: Buffer.from(text) });
  const settle = () => new Promise((resolve) => setImmediate(resolve));

  test('listens to the newest stream only: it ends the older one and ignores what comes late on it (I2)', async () => {
    const { transfers, chunks } = endpoint();
    const [first, second] = [stream(transfers), stream(transfers)];
    first.say(open(1));
    await settle();
    first.say(chunk(0, 'a'));
    await settle();
    second.say(open(2));
    first.say(chunk(1, 'not this'));
    second.say(chunk(1, 'b'));
    await settle();
    expect(first.ends).toEqual(['replaced by a newer stream']);
    expect(second.answers[0]).toMatchObject({ type: 'ready', wanted: 1 });
    expect(chunks).toEqual(['a', 'b']);
  });

  test('sends away a stream that is older than the one it has (I2)', async () => {
    const { transfers, chunks } = endpoint();
    const [first, second, late] = [stream(transfers), stream(transfers), stream(transfers)];
    first.say(open(1));
    await settle();
    second.say(open(3));
    late.say(open(2));
    expect(late.ends).toEqual(['replaced by a newer stream']);
    expect(late.answers).toEqual([]);
    late.say(chunk(0, 'late'));
    second.say(chunk(0, 'a'));
    await settle();
    expect(second.ends).toEqual([]);
    expect(chunks).toEqual(['a']);
  });

  test('keeps what it received before a break and asks for the next chunk, stored or not (I1)', async () => {
    const { transfers, chunks, hold, release } = endpoint();
    const [first, second] = [stream(transfers), stream(transfers)];
    first.say(open(1));
    await settle();
    hold();
    first.say(chunk(0, 'a'));
    first.say(chunk(1, 'b'));
    await settle();
    first.broken();
    second.say(open(2));
    expect(second.answers).toEqual([{ type: 'ready', wanted: 2, stored: 0, window: 4 }]);
    release();
    await settle();
    second.say(chunk(2, 'c'));
    second.say({ type: 'finish', count: 3 });
    await settle();
    expect(chunks).toEqual(['a', 'b', 'c']);
    expect(second.answers.at(-1)).toEqual({ type: 'installed' });
  });

  test.each<{ name: string; says: readonly SenderMessage[]; error: string }>([
    { name: 'leaves out a chunk', says: [chunk(1, 'x')], error: 'received chunk 1 of a snapshot instead of chunk 0' },
    {
      name: 'repeats a chunk',
      says: [chunk(0, 'x'), chunk(0, 'x')],
      error: 'received chunk 0 of a snapshot instead of chunk 1',
    },
    { name: 'ends too early', says: [{ type: 'finish', count: 2 }], error: 'ended before all its chunks' },
    { name: 'opens twice', says: [open(2)], error: 'opened twice' },
    {
      name: 'sends beyond the window',
      says: [chunk(0, 'a'), chunk(1, 'b'), chunk(2, 'c')],
      error: 'received more chunks of a snapshot than allowed',
    },
  ])('ends a stream that $name, and another one can go on (I4)', async ({ says, error }) => {
    const { transfers, aborts, hold } = endpoint(2);
    const [bad, good] = [stream(transfers), stream(transfers)];
    hold();
    bad.say(open(1));
    await settle();
    for (const said of says) bad.say(said);
    expect(bad.ends.join()).toContain(error);
    good.say(open(2));
    expect(good.answers[0]?.type).toBe('ready');
    expect(aborts).toEqual([]);
  });

  test('gives up a transfer whose stream does not come back, and answers that it failed (I3)', async () => {
    const { clock, transfers, aborts } = endpoint();
    const [first, second] = [stream(transfers), stream(transfers)];
    first.say(open(1));
    await settle();
    first.broken();
    clock.advance(14_999);
    expect(aborts).toEqual([]);
    clock.advance(1);
    expect(aborts).toHaveLength(1);
    second.say(open(2));
    expect(second.answers[0]).toMatchObject({ type: 'refused', refusal: 'failed' });
  });

  test('gives up the older transfer of a node to a replica when that node begins another (I5)', async () => {
    const { transfers, aborts } = endpoint();
    const [first, second] = [stream(transfers), stream(transfers)];
    first.say(open(1));
    await settle();
    second.say(open(1, '00000000000000bb'));
    await settle();
    expect(aborts).toEqual(['replaced by a newer transfer']);
    expect(first.answers.at(-1)).toMatchObject({ type: 'refused', refusal: 'failed' });
    expect(second.answers[0]).toMatchObject({ type: 'ready', wanted: 0 });
  });

  test('forgets outcomes after a while, and leaves no timer behind (I4)', async () => {
    const { clock, transfers } = endpoint();
    const only = stream(transfers);
    only.say(open(1));
    await settle();
    only.say({ type: 'finish', count: 0 });
    await settle();
    expect(only.answers.at(-1)).toEqual({ type: 'installed' });
    const again = stream(transfers);
    again.say(open(2));
    expect(again.answers).toEqual([{ type: 'installed' }]);
    clock.advance(60_000);
    const late = stream(transfers);
    late.say(open(3));
    expect(late.answers[0]).toMatchObject({ type: 'refused', refusal: 'unknown' });
    expect(clock.pendingTimers).toBe(0);
  });

  test('ends all transfers when it stops, and takes no more', async () => {
    const { clock, transfers, aborts } = endpoint();
    const [first, second] = [stream(transfers), stream(transfers)];
    first.say(open(1));
    await settle();
    transfers.stop('the node is stopping');
    expect(aborts).toEqual(['the node is stopping']);
    second.say(open(1, '00000000000000bb'));
    expect(second.answers[0]).toMatchObject({ type: 'refused', refusal: 'failed' });
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('the sending end', () => {
  const CHUNKS = 2 * SNAPSHOT_TRANSFER_DEFAULTS.windowChunks;

  /** A receiver that says only what the test lets it say. */
  function sending(signal = new AbortController().signal) {
    const clock = new ManualClock();
    const said: SenderMessage[] = [];
    let events: SnapshotLinkEvents | undefined;
    const context = {
      clock,
      random: new SeededRandom(1),
      options: snapshotTransferOptions(),
      traffic: newTraffic(),
      dial: (given: SnapshotLinkEvents) => {
        events = given;
        return {
          send: (bytes: Buffer) => void said.push(decodeSenderMessage(bytes)),
          close: (last?: Buffer) => {
            if (last !== undefined) said.push(decodeSenderMessage(last));
          },
        };
      },
    };
    const source = testSource(CHUNKS);
    const result = sendOverLinks(context, { header: SNAPSHOT_HEADER, chunks: source.chunks, signal }).then(
      () => 'installed',
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    const answer = async (...answers: readonly ReceiverMessage[]) => {
      for (const one of answers) events?.message(encodeReceiverMessage(one));
      await new Promise((resolve) => setImmediate(resolve));
    };
    const chunks = () => said.filter(({ type }) => type === 'chunk').length;
    return { clock, said, source, result, answer, chunks, broken: (why: string) => events?.broken(why) };
  }

  const ready = (window: number): ReceiverMessage => ({ type: 'ready', wanted: 0, stored: 0, window });

  test("sends within the receiver's window, and its own if that is smaller (W1)", async () => {
    const small = sending();
    await small.answer(ready(2));
    expect(small.chunks()).toBe(2);
    await small.answer({ type: 'stored', stored: 1 });
    expect(small.chunks()).toBe(3);
    const large = sending();
    await large.answer(ready(1000));
    expect(large.chunks()).toBe(SNAPSHOT_TRANSFER_DEFAULTS.windowChunks);
  });

  test('gives up a receiver that owes an answer and says nothing (O4)', async () => {
    const { clock, result, answer, said } = sending();
    await answer(ready(4));
    clock.advance(30_000);
    expect(await result).toContain('does not answer');
    expect(said.at(-1)).toMatchObject({ type: 'abort' });
  });

  test('waits for a receiver that says that it is working (O4)', async () => {
    const { clock, result, answer } = sending();
    await answer(ready(100));
    for (let stored = 1; stored <= CHUNKS; stored++) await answer({ type: 'stored', stored });
    for (let i = 0; i < 100; i++) {
      clock.advance(20_000);
      await answer({ type: 'working' });
    }
    await answer({ type: 'installed' });
    expect(await result).toBe('installed');
  });

  test('sends again, after a break, from the chunk that is wanted, and no earlier one (I1)', async () => {
    const { clock, answer, said, broken } = sending();
    await answer(ready(4));
    broken('cut');
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(1_000);
    await new Promise((resolve) => setImmediate(resolve));
    said.length = 0;
    await answer({ type: 'ready', wanted: 2, stored: 0, window: 4 });
    expect(said.map((message) => (message.type === 'chunk' ? message.number : -1))).toEqual([2, 3]);
  });

  test('ends with a break before it was accepted: the offer costs nothing to repeat (O3)', async () => {
    const { result, broken, source } = sending();
    broken('no route');
    expect(await result).toBe('no route');
    expect(source.pulled).toBe(0);
  });

  test.each<{ name: string; answers: readonly ReceiverMessage[] }>([
    { name: 'stored more than was sent', answers: [ready(4), { type: 'stored', stored: 50 }] },
    { name: 'wants a chunk that is not sent yet', answers: [{ type: 'ready', wanted: 9, stored: 0, window: 4 }] },
  ])('gives up a receiver that claims to have $name', async ({ answers }) => {
    const { result, answer } = sending();
    await answer(...answers);
    expect(await result).toMatch(/chunk/);
  });
});

describe('messages of a snapshot stream', () => {
  test.each<SenderMessage>([
    { type: 'open', id: '0123456789abcdef', attempt: 3, header: SNAPSHOT_HEADER },
    { type: 'chunk', number: 2 ** 40, bytes: Buffer.from('abc') },
    { type: 'finish', count: 2 ** 40 },
    { type: 'abort', reason: 'über' },
  ])('$type survives the wire, and is refused when it is cut short', (sent) => {
    const bytes = encodeSenderMessage(sent);
    expect(decodeSenderMessage(bytes)).toEqual(sent);
    if (sent.type !== 'abort') expect(() => decodeSenderMessage(bytes.subarray(0, 4))).toThrow(WireError);
  });

  test.each<ReceiverMessage>([
    { type: 'ready', wanted: 7, stored: 5, window: 4 },
    { type: 'stored', stored: 2 ** 40 },
    { type: 'working' },
    { type: 'installed' },
    { type: 'refused', refusal: 'busy', reason: 'no place' },
  ])('$type survives the wire', (sent) => {
    expect(decodeReceiverMessage(encodeReceiverMessage(sent))).toEqual(sent);
  });

  test.each([Buffer.alloc(0), Buffer.of(99), Buffer.of(1, 2), Buffer.of(4, 99), Buffer.alloc(19)])(
    'garbage is refused on either side: %o',
    (bytes) => {
      expect(() => decodeReceiverMessage(bytes)).toThrow(WireError);
      expect(() => decodeSenderMessage(bytes)).toThrow(WireError);
    },
  );
});

test('the window keeps one run of chunks, from the first that is not stored (W1, W2)', () => {
  const window = new ChunkWindow(3);
  const sent = ['a', 'b', 'c'].map((text) => window.push(Buffer.from(text)));
  expect(window.hasRoom).toBe(false);
  expect(window.release(1)).toBe(true);
  expect(window.release(1)).toBe(false);
  expect(window.hasRoom).toBe(true);
  expect(window.from(1)).toEqual(sent.slice(1));
  expect(window.from(3)).toEqual([]);
  expect(() => window.from(0)).toThrow(WireError);
  expect(() => window.release(4)).toThrow(WireError);
  window.release(3);
  expect(window.bytes).toBe(0);
});

test('the memory of a chunk is used again once it is stored, and not before (W3)', () => {
  const window = new ChunkWindow(2);
  const [first, second] = [window.push(Buffer.alloc(100, 'a')), window.push(Buffer.alloc(90, 'b'))];
  const asSent = Buffer.from(second);
  window.release(1);
  expect(window.push(Buffer.alloc(80, 'c')).buffer).toBe(first.buffer);
  expect(second).toEqual(asSent);
  window.release(3);
  const messages = [window.push(Buffer.alloc(100, 'd')), window.push(Buffer.alloc(101, 'e'))];
  expect(messages.map((message) => message.subarray(-2).toString())).toEqual(['dd', 'ee']);
  expect(window.from(3).map(({ length }) => length)).toEqual([107, 108]);
  expect(window.bytes).toBe(107 + 108);
});
