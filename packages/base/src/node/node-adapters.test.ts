import { constants } from 'node:fs';
import { mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { DiskFile } from '../disk.ts';
import { nodeClock } from './node-clock.ts';
import { nodeDisk } from './node-disk.ts';
import { nodeRandom } from './node-random.ts';

let root = '';
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'node-disk-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

function write(file: DiskFile, position: number, chunks: readonly Uint8Array[]): Promise<void> {
  return new Promise((resolve, reject) => {
    file.write(position, chunks, (error) => (error === null ? resolve() : reject(error)));
  });
}

function writeSynced(file: DiskFile, position: number, chunks: readonly Uint8Array[]): Promise<void> {
  return new Promise((resolve, reject) => {
    file.writeSynced(position, chunks, (error) => (error === null ? resolve() : reject(error)));
  });
}

/** The flags of each descriptor that this process has of a file; none where the platform does not tell. */
async function descriptorsOf(path: string): Promise<number[]> {
  const flags: number[] = [];
  for (const fd of await readdir('/proc/self/fd').catch(() => [])) {
    if ((await readlink(`/proc/self/fd/${fd}`).catch(() => '')) !== path) continue;
    const info = await readFile(`/proc/self/fdinfo/${fd}`, 'utf8');
    flags.push(Number.parseInt(/^flags:\s*(\d+)$/m.exec(info)?.[1] ?? '0', 8));
  }
  return flags;
}

describe.each([{ syncInPlace: true }, { syncInPlace: false }, {}])('nodeDisk with %j', (options) => {
  it('writes many chunks at a position, and reads them back', async () => {
    const disk = nodeDisk(root, options);
    await disk.makeDir('a/b');
    const file = await disk.open('a/b/one', { create: true });
    await file.preallocate(3_000_000);
    expect(await file.size()).toBe(3_000_000);
    const chunks = Array.from({ length: 3000 }, (_, i) => Buffer.alloc(100, i & 0xff));
    await write(file, 500, chunks);
    await new Promise<void>((resolve, reject) => file.sync((error) => (error ? reject(error) : resolve())));
    const back = await file.read(0, 301_000);
    expect(back.subarray(0, 500).every((byte) => byte === 0)).toBe(true);
    expect(back.subarray(500, 300_500).equals(Buffer.concat(chunks))).toBe(true);
    expect((await file.read(2_999_999, 10)).length).toBe(1);
    await file.truncate(10);
    expect(await file.size()).toBe(10);
    await file.close();
  });

  it('writes and syncs in one call, and reads that back', async () => {
    const disk = nodeDisk(root, options);
    const file = await disk.open('one', { create: true });
    await disk.rename({ from: 'one', to: 'two' });
    await (await disk.open('one', { create: true })).close(); // another file, which has its name now
    const chunks = Array.from({ length: 3000 }, (_, i) => Buffer.alloc(10, i & 0xff));
    for (const position of [0, 30_000]) await writeSynced(file, position, chunks);
    expect((await file.read(0, 70_000)).equals(Buffer.concat([...chunks, ...chunks]))).toBe(true);
    await file.close();
    expect(await descriptorsOf(join(root, 'two'))).toEqual([]);
  });

  it('calls back after the call, never inside it', async () => {
    const file = await nodeDisk(root, options).open('one', { create: true });
    let returned = false;
    await new Promise<void>((resolve) => {
      file.write(0, [Buffer.from('x')], () => {
        expect(returned).toBe(true);
        resolve();
      });
      returned = true;
    });
    await file.close();
  });
});

describe('nodeDisk', () => {
  it.runIf(process.platform === 'linux')('syncs in the same step what it writes and syncs in the pool', async () => {
    const file = await nodeDisk(root, { syncInPlace: false }).open('one', { create: true });
    await writeSynced(file, 0, [Buffer.from('x')]);
    const flags = await descriptorsOf(join(root, 'one'));
    expect(flags.filter((flag) => (flag & constants.O_DSYNC) !== 0)).toHaveLength(1);
    await file.close();
  });

  it('lists files only, sorted; renames and removes', async () => {
    const disk = nodeDisk(root);
    expect(await disk.list('none')).toEqual([]);
    await disk.makeDir('d/sub');
    for (const name of ['b', 'a', 'c']) await (await disk.open(`d/${name}`, { create: true })).close();
    await disk.rename({ from: 'd/c', to: 'd/0' });
    await disk.remove('d/b');
    await disk.syncDir('d');
    expect(await disk.list('d')).toEqual(['0', 'a']);
  });

  it('says ENOENT for a file that is not there, and refuses paths out of its root', async () => {
    const disk = nodeDisk(root);
    await expect(disk.open('none', { create: false })).rejects.toMatchObject({ code: 'ENOENT' });
    await expect(async () => disk.remove('../x')).rejects.toThrow(/root/);
  });
});

describe('nodeRandom', () => {
  it('draws integers over the whole of its bound, up to the largest safe integer', () => {
    const random = nodeRandom();
    const seen = new Set(Array.from({ length: 2000 }, () => random.int(10)));
    expect([...seen].sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    const large = Array.from({ length: 100 }, () => random.int(Number.MAX_SAFE_INTEGER));
    expect(large.every(Number.isSafeInteger)).toBe(true);
    expect(Math.max(...large)).toBeGreaterThan(2 ** 50);
    expect(random.bytes(16)).toHaveLength(16);
    expect(() => random.int(0)).toThrow();
  });

  it('gives bytes that nobody had before and that no later draw changes', () => {
    const random = nodeRandom();
    const given = Array.from({ length: 2_000 }, (_, i) => random.bytes(i % 2 === 0 ? 16 : 200));
    const texts = given.map((bytes) => bytes.toString('hex'));
    expect(new Set(texts).size).toBe(2_000);
    random.int(2 ** 40);
    expect(given.map((bytes) => bytes.toString('hex'))).toEqual(texts);
    expect(random.bytes(0)).toHaveLength(0);
  });
});

describe('nodeClock', () => {
  it('fires timers once, not before their delay, and not when cancelled or very far away', async () => {
    const clock = nodeClock();
    const start = clock.monotonicMs();
    let wrong = false;
    clock
      .setTimer(5, () => {
        wrong = true;
      })
      .cancel();
    const far = clock.setTimer(2 ** 40, () => {
      wrong = true;
    });
    await new Promise<void>((resolve) => {
      clock.setTimer(20, resolve);
      setTimeout(() => {}, 1000).unref();
    });
    far.cancel();
    expect(clock.monotonicMs() - start).toBeGreaterThan(15);
    expect(wrong).toBe(false);
  });
});
