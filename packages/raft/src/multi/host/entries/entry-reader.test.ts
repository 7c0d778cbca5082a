import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import type { EntryRange, GroupLog } from '../../ports.ts';
import { newStats } from '../stats.ts';
import { type EntryOwner, EntryReader } from './entry-reader.ts';

const MIB = 2 ** 20;

/** A reader over a log that answers when it is told to, and the ranges that were asked for. */
function readerOver() {
  const asked: EntryRange[] = [];
  const answers: (() => void)[] = [];
  const read: GroupLog['read'] = (range) => {
    asked.push(range);
    return new Promise((resolve) => answers.push(() => resolve([])));
  };
  const fail = (error: unknown): never => {
    throw error;
  };
  const reader = new EntryReader({ log: { read }, readsMax: 4, stats: newStats(), guard: (work) => work(), fail });
  const want = (groupId: number): void => {
    const owner: EntryOwner = { groupId, entriesRead: () => undefined };
    reader.read(owner, { reader: 1, from: 1, to: 9, maxBytes: MIB });
  };
  return { reader, asked, answers, want };
}

test('so many reads are under way as the option says, the others in the order in which they came (Q1)', async () => {
  const { asked, answers, want } = readerOver();
  for (let groupId = 1; groupId <= 6; groupId++) want(groupId);
  expect(asked.map(({ groupId }) => groupId)).toEqual([1, 2, 3, 4]);
  answers[2]?.();
  await Promise.resolve();
  expect(asked.map(({ groupId }) => groupId)).toEqual([1, 2, 3, 4, 5]);
});

test('many ask for a part each, and one for all that it may have, once it is sure that there are no others (Q3)', async () => {
  const { asked, answers, want } = readerOver();
  const answerAll = async (): Promise<void> => {
    for (const answer of answers.splice(0)) answer();
    await Promise.resolve();
  };
  for (let groupId = 1; groupId <= 1_000; groupId++) want(groupId);
  while (asked.length < 1_000) await answerAll();
  const bytes = asked.map(({ maxBytes }) => maxBytes);
  expect(Math.max(...bytes)).toBeLessThan(70 * 1024);
  expect(bytes[10]).toBeLessThan(5 * 1024);
  expect(Math.min(...bytes)).toBeGreaterThanOrEqual(4 * 1024);
  for (let i = 0; i < 100; i++) {
    await answerAll();
    want(1);
  }
  expect(asked.at(-1)?.maxBytes).toBeLessThan(8 * 1024);
  for (let i = 0; i < 10_000; i++) {
    await answerAll();
    want(1);
  }
  expect(asked.at(-1)?.maxBytes).toBe(MIB);
});

test('what was read is let go, although there is always somebody who waits', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const { reader, answers } = readerOver();
  const owners: WeakRef<EntryOwner>[] = [];
  const want = (groupId: number): void => {
    const owner: EntryOwner = { groupId, entriesRead: () => undefined };
    owners.push(new WeakRef(owner));
    reader.read(owner, { reader: 1, from: 1, to: 9, maxBytes: MIB });
  };
  for (let groupId = 1; groupId <= 10; groupId++) want(groupId);
  for (let groupId = 11; groupId <= 1_000; groupId++) {
    want(groupId);
    answers.shift()?.();
    await Promise.resolve();
  }
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  reader.read({ groupId: 1, entriesRead: () => undefined }, { reader: 1, from: 1, to: 9, maxBytes: MIB });
  expect(owners.filter((each) => each.deref() !== undefined).length).toBeLessThan(50);
});
