// The log: design §5 ▸, traps 25 and 26.
import { type Disk, SeededRandom, silentLogger } from '@remora/base';
import { SimDisk } from '@remora/base/testing';
import { describe, expect, test } from 'vitest';
import type { Entry } from '../../src/core/types.ts';
import { openGroupLog } from '../../src/multi/log/group-log.ts';
import { LogDamagedError, readFrame, SEGMENT_HEADER_BYTES } from '../../src/multi/log/log-format.ts';
import type { GroupLog } from '../../src/multi/ports.ts';

function open(disk: Disk, onFailure: (error: Error) => void = () => {}): Promise<GroupLog> {
  return openGroupLog({ disk, dir: 'log', options: { segmentBytes: 4096 }, logger: silentLogger, onFailure });
}

function newDisk(): SimDisk {
  return new SimDisk({ random: new SeededRandom(3) });
}

function entry(index: number, term = 1, size = 300): Entry {
  return { index, term, type: 'normal', data: Buffer.alloc(size, `${index}@${term};`) };
}

function append(log: GroupLog, groupId: number, ...entries: Entry[]): Promise<void> {
  return new Promise((resolve) => log.append([{ groupId, entries }], resolve));
}

/** Everything of a group that a new opening of the log finds. */
async function recoveredEntries(disk: Disk, groupId: number): Promise<readonly Entry[]> {
  const log = await open(disk);
  const found: Entry[] = [];
  const group = log.recovered().get(groupId);
  const to = group?.outline.lastIndex ?? 0;
  for (let from = (group?.start.index ?? 0) + 1; from <= to; from = (found.at(-1)?.index ?? to) + 1) {
    found.push(...(await log.read({ groupId, from, to, maxBytes: 1_000_000 })));
  }
  await log.close();
  return found;
}

/** A closed log of group 1 with one frame per entry; the places of its frames in its first segment. */
async function written(count: number) {
  const disk = newDisk();
  const log = await open(disk);
  for (let i = 1; i <= count; i++) await append(log, 1, entry(i));
  await log.close();
  const path = 'log/000000000000001.log';
  const places: number[] = [];
  for (let at = SEGMENT_HEADER_BYTES; ; ) {
    const frame = readFrame(disk.contents(path), at, 1);
    if (frame === undefined) return { disk, path, places };
    places.push(at);
    at = frame.end;
  }
}

describe('recovery', () => {
  test('design §5 ▸: a bad record with a later write intact is damage, and the node reports it', async () => {
    const { disk, path, places } = await written(5);
    disk.corrupt(path, (places[2] ?? 0) + 50);
    const failure = await open(disk).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(LogDamagedError);
    expect(failure).toMatchObject({ file: path, offset: places[2] });
  });

  test('trap 25: a bad record with nothing intact behind it is a torn tail, not damage', async () => {
    const { disk, path, places } = await written(5);
    disk.corrupt(path, (places[4] ?? 0) + 50);
    expect(await recoveredEntries(disk, 1)).toHaveLength(4);
  });

  test('trap 25: a torn tail is cut before anything is appended, so that what follows is found', async () => {
    const { disk, path, places } = await written(5);
    disk.corrupt(path, (places[4] ?? 0) + 50);
    const log = await open(disk);
    expect(disk.contents(path)).toHaveLength(places[4] ?? 0);
    await append(log, 1, entry(5, 2));
    await append(log, 1, entry(6, 2));
    await log.close();
    expect((await recoveredEntries(disk, 1)).map(({ term }) => term)).toEqual([1, 1, 1, 1, 2, 2]);
  });

  test('trap 25: a record counts only with its whole content intact', async () => {
    const { disk, path, places } = await written(1);
    for (const offset of [0, 5, 9, 15, 21, 29, 60, 200]) {
      const copy = disk.contents(path);
      disk.corrupt(path, (places[0] ?? 0) + offset);
      expect(await recoveredEntries(disk, 1), `offset ${offset}`).toEqual([]);
      const file = await disk.open(path, { create: true });
      await new Promise((resolve) => file.write(0, [copy], resolve));
      await file.close();
    }
  });
});

describe('moved records', () => {
  test('design §5 ▸: never truncate on replay: what was appended after the entries they move stays', async () => {
    const disk = newDisk();
    const log = await open(disk);
    await append(log, 7, entry(1), entry(2)); // a slow group, in the first segment
    for (let i = 1; i <= 3; i++) await append(log, 1, entry(i, 1, 900));
    await append(log, 7, entry(3), entry(4)); // and later ones of it in a segment that stays
    for (let i = 4; i <= 60; i++) {
      await append(log, 1, entry(i, 1, 900));
      log.compact(1, { index: i - 1, term: 1 });
    }
    expect(log.stats()).toMatchObject({ bytesMoved: expect.any(Number) });
    await log.close();
    expect((await recoveredEntries(disk, 7)).map(({ index }) => index)).toEqual([1, 2, 3, 4]);
  });
});

describe('a disk that fails', () => {
  /** How often the log called back after `what` had failed, and what it told of it. */
  async function afterFailed(what: 'write' | 'sync'): Promise<{ called: number; failures: string[] }> {
    const disk = newDisk();
    const failures: string[] = [];
    const log = await open(disk, (error) => failures.push(error.message));
    await append(log, 1, entry(1));
    disk.failNext(what);
    let called = 0;
    for (let i = 2; i < 6; i++) log.append([{ groupId: 1, entries: [entry(i)] }], () => called++);
    for (let turn = 0; turn < 5; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
    log.append([{ groupId: 1, entries: [entry(6)] }], () => called++);
    for (let turn = 0; turn < 5; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
    await log.close();
    return { called, failures };
  }

  test('trap 26: a failed sync is not retried: nothing is called back afterwards, and it is reported once', async () => {
    expect(await afterFailed('sync')).toEqual({ called: 0, failures: [expect.stringContaining('sync failed')] });
  });

  test('trap 26: a failed write is not retried: nothing is called back afterwards, and it is reported once', async () => {
    expect(await afterFailed('write')).toEqual({ called: 0, failures: [expect.stringContaining('write failed')] });
  });

  test('trap 8: nothing is called back before it is synced', async () => {
    const disk = newDisk();
    const log = await open(disk);
    await append(log, 1, entry(1));
    disk.crash();
    expect(await recoveredEntries(disk.mount(), 1)).toHaveLength(1);
  });
});
