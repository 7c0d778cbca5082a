import type { Clock } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { expect, test } from 'vitest';
import { decodeFrame } from './frame.ts';
import type { FrameLink } from './link.ts';
import { Outbox } from './outbox.ts';

const ITEM_BYTES = 400 << 10;

function bedOf() {
  const turns: (() => void)[] = [];
  const sent: number[][] = [];
  const bed = { turns, sent, told: 0 };
  const clock = new ManualClock();
  const link: Pick<FrameLink, 'send'> = {
    send: (frame) => {
      sent.push(decodeFrame(frame).map(([, id]) => id));
      return true;
    },
  };
  const ports: Clock = {
    wallMs: () => clock.wallMs(),
    monotonicMs: () => clock.monotonicMs(),
    setTimer: (delayMs, fn) => clock.setTimer(delayMs, fn),
    setImmediate: (fn) => void turns.push(fn),
  };
  const outbox = new Outbox(link as FrameLink, ports, () => bed.told++);
  outbox.open();
  for (let id = 1; id <= 7; id++) outbox.put([1, id, Buffer.alloc(ITEM_BYTES)], ITEM_BYTES);
  return { bed, outbox };
}

test('a long queue leaves a megabyte at a time, in order, and room is announced once it is empty (O1, O3, O4)', () => {
  const { bed, outbox } = bedOf();
  expect(outbox.hasRoom(ITEM_BYTES)).toBe(false);
  const toldAfter: number[] = [];
  for (let turn = bed.turns.shift(); turn !== undefined; turn = bed.turns.shift()) {
    turn();
    toldAfter.push(bed.told);
  }
  expect(bed.sent).toEqual([[1, 2, 3], [4, 5, 6], [7]]);
  expect(toldAfter).toEqual([0, 0, 1]);
  expect(outbox.bytes).toBe(0);
});

test('a process that is about to end sends all of the queue now', () => {
  const { bed, outbox } = bedOf();
  outbox.flush();
  expect(bed.sent).toEqual([[1, 2, 3], [4, 5, 6], [7]]);
});
