// What the log does with bytes that are not what it wrote, and with a disk that fails (traps 8, 25, 26).
import { createHash } from 'node:crypto';
import { crc32, type Disk, SeededRandom, silentLogger } from '@remora/base';
import { ManualClock, SimDisk } from '@remora/base/testing';
import { describe, expect, it } from 'vitest';
import type { Entry } from '../../core/types.ts';
import type { GroupLog } from '../ports.ts';
import { openGroupLog } from './group-log.ts';
import {
  decodeSegmentHeader,
  encodeSegmentHeader,
  LOG_FORMAT_VERSION,
  LogDamagedError,
  LogVersionError,
  readFrame,
  SEGMENT_HEADER_BYTES,
} from './log-format.ts';
import { FrameWriter } from './record-codec.ts';

const SEGMENT_BYTES = 4096;

function open(disk: Disk, onFailure: (error: Error) => void = () => {}): Promise<GroupLog> {
  return openGroupLog({ disk, dir: 'log', options: { segmentBytes: SEGMENT_BYTES }, logger: silentLogger, onFailure });
}

function newDisk(): SimDisk {
  return new SimDisk({ random: new SeededRandom(3) });
}

function entry(index: number, size = 300): Entry {
  return { index, term: 1, type: 'normal', data: Buffer.alloc(size, `entry ${index};`) };
}

function append(log: GroupLog, ...entries: Entry[]): Promise<void> {
  return new Promise((resolve) => log.append([{ groupId: 1, entries }], resolve));
}

/** A closed log of group 1 with one frame per entry. */
async function written(count: number): Promise<SimDisk> {
  const disk = newDisk();
  const log = await open(disk);
  for (let i = 1; i <= count; i++) await append(log, entry(i));
  await log.close();
  return disk;
}

async function frames(disk: SimDisk): Promise<{ path: string; at: number; end: number; sequence: number }[]> {
  const found = [];
  for (const name of await disk.list('log')) {
    const path = `log/${name}`;
    const bytes = disk.contents(path);
    for (let at = SEGMENT_HEADER_BYTES; ; ) {
      const frame = readFrame(bytes, at, Number.parseInt(name, 10));
      if (frame === undefined) break;
      found.push({ path, at, end: frame.end, sequence: frame.sequence });
      at = frame.end;
    }
  }
  return found;
}

async function recoveredCount(disk: SimDisk): Promise<number> {
  const log = await open(disk);
  const count = log.recovered().get(1)?.entries.length ?? 0;
  await log.close();
  return count;
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, 16);
}

describe('bit flips', () => {
  it('are damage in any frame but the last, in its header as in its payload, within a segment and at its end', async () => {
    const count = 25;
    const places = (await frames(await written(count))).slice(0, -1);
    expect(new Set(places.map((place) => place.path)).size).toBeGreaterThan(1);
    for (const { path, at, end } of places) {
      for (const position of [at, at + 5, at + 9, at + 15, at + 21, at + 29, at + 40, end - 9]) {
        const disk = await written(count);
        disk.corrupt(path, position, 0x10);
        const failure = await open(disk).catch((error: unknown) => error);
        expect(failure).toBeInstanceOf(LogDamagedError);
        expect(failure).toMatchObject({ file: path, offset: at });
      }
    }
  });

  it('in the last frame are a torn tail: it is cut, and what is appended then is found again', async () => {
    const disk = await written(25);
    const last = (await frames(disk)).at(-1);
    disk.corrupt(last?.path ?? '', (last?.at ?? 0) + 50);
    const log = await open(disk);
    expect(log.recovered().get(1)?.entries).toHaveLength(24);
    await append(log, entry(25));
    await append(log, entry(26));
    await log.close();
    expect(disk.contents(last?.path ?? '')).toHaveLength(last?.at ?? 0);
    expect(await recoveredCount(disk)).toBe(26);
    expect(await recoveredCount(disk)).toBe(26);
  });

  it('in the header of a segment are damage', async () => {
    for (const path of new Set((await frames(await written(25))).map((frame) => frame.path))) {
      const disk = await written(25);
      disk.corrupt(path, 13);
      await expect(open(disk)).rejects.toMatchObject({ name: 'LogDamagedError', file: path });
    }
  });

  it('a segment that is gone from the middle is damage', async () => {
    const disk = await written(60);
    const paths = [...new Set((await frames(disk)).map((frame) => frame.path))];
    await disk.remove(paths[1] ?? '');
    await expect(open(disk)).rejects.toBeInstanceOf(LogDamagedError);
  });
});

describe('a torn write', () => {
  it('never counts, wherever it was cut and whichever sectors came through', async () => {
    for (let seed = 1; seed <= 300; seed++) {
      const random = new SeededRandom(seed);
      const clock = new ManualClock();
      const disk = new SimDisk({ random, clock, latencyMs: 1 });
      const opening = open(disk.mount());
      const log = await drive(clock, opening);
      const durable = random.int(8);
      for (let i = 1; i <= durable; i++) await drive(clock, append(log, entry(i, 700)));
      append(log, entry(durable + 1, 3000)).catch(() => {});
      if (random.int(2) === 0) clock.fireNext();
      disk.crash();
      const again = await drive(clock, open(disk.mount()));
      const found = again.recovered().get(1)?.entries ?? [];
      expect(found.length, `seed ${seed}`).toBeGreaterThanOrEqual(durable);
      expect(found.length).toBeLessThanOrEqual(durable + 1);
      await drive(clock, append(again, entry(found.length + 1)));
      disk.crash();
      const third = await drive(clock, open(disk.mount()));
      expect(third.recovered().get(1)?.entries).toHaveLength(found.length + 1);
    }
  });
});

describe('a write that a dying process did not sync', () => {
  it('is made durable before others follow it: losing it then would be damage (V2)', async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const clock = new ManualClock();
      const disk = new SimDisk({ random: new SeededRandom(seed), clock, latencyMs: 1 });
      const log = await drive(clock, open(disk.mount()));
      // It fills its segment to the end, so that nothing has to be cut off behind it.
      append(log, entry(1, 2 * SEGMENT_BYTES)).catch(() => {});
      clock.fireNext();
      disk.kill();
      const again = await drive(clock, open(disk.mount()));
      const found = again.recovered().get(1)?.entries.length ?? 0;
      await drive(clock, append(again, entry(found + 1)));
      disk.crash();
      const third = await drive(clock, open(disk.mount()));
      expect(third.recovered().get(1)?.entries, `seed ${seed}`).toHaveLength(found + 1);
    }
  });
});

async function drive<T>(clock: ManualClock, work: Promise<T>): Promise<T> {
  let settled = false;
  const watched = work.finally(() => {
    settled = true;
  });
  while (!settled) {
    clock.fireNext();
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  return watched;
}

describe('recycled segments', () => {
  it('hold frames of their earlier use, which never come back', async () => {
    const disk = newDisk();
    let log = await open(disk);
    for (let i = 1; i <= 200; i++) {
      await append(log, entry(i));
      log.compact(1, { index: i - 1, term: 1 });
    }
    await log.close();
    // There are such leftovers, behind the frames of the present.
    const stale = (await disk.list('log')).filter((name) => {
      const bytes = disk.contents(`log/${name}`);
      for (let at = SEGMENT_HEADER_BYTES; at < bytes.length; at += 8) {
        for (let generation = 1; generation < Number.parseInt(name, 10); generation++) {
          if (readFrame(bytes, at, generation) !== undefined) return true;
        }
      }
      return false;
    });
    expect(stale.length).toBeGreaterThan(0);
    log = await open(disk);
    expect(log.recovered().get(1)).toMatchObject({ start: { index: 199, term: 1 }, entries: [entry(200)] });
    await log.close();
  });

  it('a frame is only read under its own generation, even if its header claims another', () => {
    const writer = new FrameWriter();
    writer.begin();
    writer.add({ groupId: 1, entries: [entry(1)] });
    const frame = Buffer.concat(writer.finish({ generation: 7, sequence: 1 }).chunks);
    expect(readFrame(frame, 0, 7)?.sequence).toBe(1);
    expect(readFrame(frame, 0, 8)).toBeUndefined();
    frame.writeUIntLE(8, 14, 6);
    expect(readFrame(frame, 0, 8)).toBeUndefined();
  });

  it('frames of this log inside entries are not mistaken for later writes', async () => {
    for (let shift = 0; shift < 8; shift++) {
      const disk = newDisk();
      const log = await open(disk);
      for (let i = 1; i <= 3; i++) await append(log, entry(i, 100));
      const copy = disk.contents('log/000000000000001.log').subarray(SEGMENT_HEADER_BYTES, 500);
      await append(log, { ...entry(4), data: Buffer.concat([Buffer.alloc(shift), copy]) });
      await log.close();
      const last = (await frames(disk)).at(-1);
      expect(last?.path).toBe('log/000000000000001.log');
      disk.corrupt('log/000000000000001.log', (last?.at ?? 0) + 21);
      expect(await recoveredCount(disk), `shift ${shift}`).toBe(3);
    }
  });
});

describe('the format', () => {
  it('refuses a log of a newer version and says so', async () => {
    const disk = await written(3);
    const header = encodeSegmentHeader({ generation: 1, firstSequence: 1 });
    header.writeUInt32LE(LOG_FORMAT_VERSION + 1, 8);
    header.writeUInt32LE(crc32(header.subarray(0, SEGMENT_HEADER_BYTES - 4)), SEGMENT_HEADER_BYTES - 4);
    const file = await disk.open('log/000000000000001.log', { create: false });
    await new Promise((resolve) => file.write(0, [header], resolve));
    await expect(open(disk)).rejects.toBeInstanceOf(LogVersionError);
  });

  it('stays as it is: a change needs a new version', () => {
    const header = encodeSegmentHeader({ generation: 3, firstSequence: 5 });
    expect(decodeSegmentHeader('f', header)).toEqual({ generation: 3, firstSequence: 5 });
    const writer = new FrameWriter();
    writer.begin();
    writer.add({
      groupId: 300,
      hardState: { term: 2, vote: 2 ** 40, commit: 4 },
      restartAt: { index: 8, term: 1 },
      entries: [
        { index: 9, term: 1, type: 'normal', data: Buffer.from('ab') },
        { index: 10, term: 1, type: 'conf', data: Buffer.from('c') },
        { index: 11, term: 2, type: 'normal', data: Buffer.alloc(0) },
      ],
    });
    writer.add({ groupId: 2, removed: true, entries: [] });
    writer.add({ groupId: 2, compacted: { index: 4, term: 1 }, entries: [] });
    writer.add({ groupId: 2, moved: true, entries: [{ index: 5, term: 1, type: 'normal', data: Buffer.from('d') }] });
    const frame = Buffer.concat(writer.finish({ generation: 3, sequence: 5 }).chunks);
    expect([header, frame].map(sha256)).toEqual(['cab6a9179b6c9ba9', '157bb0a844d1e32e']);
  });
});

describe('a disk that fails', () => {
  it.each(['write', 'sync'] as const)(
    'a failed %s stops the log: reported once, nothing called back any more',
    async (what) => {
      const disk = newDisk();
      const failures: Error[] = [];
      const log = await open(disk, (error) => failures.push(error));
      await append(log, entry(1));
      disk.failNext(what);
      let called = 0;
      for (let i = 2; i < 6; i++) {
        log.append([{ groupId: 1, entries: [entry(i)] }], () => {
          called++;
        });
      }
      await new Promise<void>((resolve) => setImmediate(resolve));
      log.append([{ groupId: 1, entries: [entry(6)] }], () => {
        called++;
      });
      log.compact(1, { index: 1, term: 1 });
      await new Promise<void>((resolve) => setImmediate(resolve));
      expect(called).toBe(0);
      expect(failures.map((error) => error.message)).toEqual([
        `cannot append to the write-ahead log in log: EIO: ${what} failed`,
      ]);
      await log.close();
      disk.crash();
      expect(await recoveredCount(disk)).toBeGreaterThanOrEqual(1);
    },
  );

  it('keeps what the next process found, although the sync of it had failed (V3)', async () => {
    // 1: the frame that begins a segment, with its header; 3: one behind others.
    for (const count of [1, 3]) {
      const disk = newDisk();
      const log = await open(disk);
      for (let i = 1; i < count; i++) await append(log, entry(i));
      disk.failNext('sync');
      log.append([{ groupId: 1, entries: [entry(count)] }], () => expect.unreachable());
      await new Promise<void>((resolve) => setImmediate(resolve));
      disk.kill();
      const next = await open(disk);
      expect(next.recovered().get(1)?.entries).toHaveLength(count); // so the node acknowledges it
      await append(next, entry(count + 1));
      disk.crash();
      expect(await recoveredCount(disk)).toBe(count + 1);
    }
  });

  it('says what to do when the disk is full', async () => {
    const disk = newDisk();
    const failures: Error[] = [];
    const log = await open(disk, (error) => failures.push(error));
    disk.setCapacity(disk.usedBytes());
    for (let i = 1; i <= 40; i++) log.append([{ groupId: 1, entries: [entry(i)] }], () => {});
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(failures).toHaveLength(1);
    expect(failures[0]?.message).toMatch(/disk is full: free space/);
    await log.close();
  });
});
