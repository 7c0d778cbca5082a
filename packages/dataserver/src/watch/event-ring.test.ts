import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { KvEvent } from '@remora/protocol';
import { expect, test } from 'vitest';
import { bytesOf, EventRing } from './event-ring.ts';

const EVENT_BYTES = 1_000;

function event(revision: number): KvEvent {
  const kv = { key: Buffer.from('k'), createRevision: 1, modRevision: revision, version: revision, lease: 0n };
  return { type: 'put', kv: { ...kv, value: Buffer.alloc(EVENT_BYTES) } };
}

function forcedCollection(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}

test('what is dropped is let go at once, however much is still there', async () => {
  const collect = forcedCollection();
  const kept = 100;
  const ring = new EventRing({ from: 1, bytesMax: () => kept * bytesOf([event(1)]) });
  const pushed: WeakRef<KvEvent>[] = [];
  for (let revision = 1; revision <= kept + 50; revision++) {
    const pushing = event(revision);
    pushed.push(new WeakRef(pushing));
    ring.push(revision, [pushing]);
  }
  // What a WeakRef was made for is kept until the present turn of the loop is over.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  expect(ring.from).toBe(51);
  expect(pushed.map((each) => each.deref() !== undefined)).toEqual([
    ...Array(50).fill(false),
    ...Array(kept).fill(true),
  ]);
  expect([...ring.since(140)].map(({ revision }) => revision)).toEqual([
    140, 141, 142, 143, 144, 145, 146, 147, 148, 149, 150,
  ]);
});

test('the newest change stays although it is larger than the ring', () => {
  const ring = new EventRing({ from: 5, bytesMax: () => 10 });
  ring.push(5, [event(5)]);
  ring.push(6, [event(6)]);
  expect([ring.from, [...ring.since(6)].length]).toEqual([6, 1]);
});

test('the oldest go when the limit falls, though nothing comes', () => {
  let bytesMax = 100 * bytesOf([event(1)]);
  const ring = new EventRing({ from: 1, bytesMax: () => bytesMax });
  for (let revision = 1; revision <= 50; revision++) ring.push(revision, [event(revision)]);
  ring.trim();
  expect(ring.from).toBe(1);
  bytesMax /= 10;
  ring.trim();
  expect(ring.from).toBe(41);
});
