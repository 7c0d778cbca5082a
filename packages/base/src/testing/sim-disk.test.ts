import { describe, expect, it } from 'vitest';
import type { DiskFile } from '../disk.ts';
import { SeededRandom } from '../random.ts';
import { ManualClock } from './manual-clock.ts';
import { SimDisk } from './sim-disk.ts';

function write(file: DiskFile, position: number, data: Uint8Array): Promise<Error | null> {
  return new Promise((resolve) => file.write(position, [data], resolve));
}

function sync(file: DiskFile): Promise<Error | null> {
  return new Promise((resolve) => file.sync(resolve));
}

async function diskWithFile(seed: number): Promise<{ disk: SimDisk; file: DiskFile }> {
  const disk = new SimDisk({ random: new SeededRandom(seed) });
  const file = await disk.open('d/one', { create: true });
  await disk.syncDir('d');
  return { disk, file };
}

describe('SimDisk', () => {
  it('keeps what was synced, and of the rest sometimes all, sometimes nothing, sometimes a part (D1)', async () => {
    const outcomes = new Set<string>();
    for (let seed = 1; seed <= 200; seed++) {
      const { disk, file } = await diskWithFile(seed);
      await write(file, 0, Buffer.alloc(1000, 1));
      await sync(file);
      await write(file, 1000, Buffer.alloc(3000, 2));
      disk.crash();
      const bytes = disk.contents('d/one');
      expect(bytes.subarray(0, 1000).every((byte) => byte === 1)).toBe(true);
      const kept = bytes.subarray(1000).filter((byte) => byte === 2).length;
      outcomes.add(
        kept === 0 ? 'nothing' : kept === 3000 ? 'all' : bytes.length === 1000 + kept ? 'prefix' : 'sectors',
      );
    }
    expect([...outcomes].sort()).toEqual(['all', 'nothing', 'prefix', 'sectors']);
  });

  it('does not cover with a sync what was written after it was begun', async () => {
    let lost = 0;
    for (let seed = 1; seed <= 50; seed++) {
      const { disk, file } = await diskWithFile(seed);
      const synced = sync(file);
      const written = write(file, 0, Buffer.from('x'));
      await Promise.all([synced, written]);
      disk.crash();
      if (disk.contents('d/one').length === 0) lost++;
    }
    expect(lost).toBeGreaterThan(5);
  });

  it('keeps a prefix of the name changes that no syncDir covers, in order (D2)', async () => {
    const seen = new Set<string>();
    for (let seed = 1; seed <= 100; seed++) {
      const { disk } = await diskWithFile(seed);
      await disk.open('d/two', { create: true });
      await disk.rename({ from: 'd/one', to: 'd/three' });
      await disk.remove('d/two');
      disk.crash();
      seen.add((await disk.list('d')).join());
    }
    expect([...seen].sort()).toEqual(['one', 'one,two', 'three', 'three,two']);
  });

  it('calls nothing back to a process that died (D3)', async () => {
    const clock = new ManualClock();
    const disk = new SimDisk({ random: new SeededRandom(1), clock, latencyMs: 5 });
    const mounted = disk.mount();
    const file = await mounted.open('one', { create: true });
    let called = false;
    file.write(0, [Buffer.from('x')], () => {
      called = true;
    });
    disk.kill();
    void mounted.remove('one').then(() => {
      called = true;
    });
    clock.advance(100);
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(called).toBe(false);
    expect(await disk.list('')).toEqual(['one']);
    expect(disk.contents('one').toString()).toBe('x');
  });

  it('reads on what a failed sync covered, and loses it with the power although a later sync succeeds (D5)', async () => {
    const { disk, file } = await diskWithFile(1);
    expect(await write(file, 0, Buffer.from('lost'))).toBeNull();
    disk.failNext('sync');
    expect(await sync(file)).toMatchObject({ code: 'EIO' });
    expect(await write(file, 4, Buffer.from('kept'))).toBeNull();
    expect(await sync(file)).toBeNull();
    disk.kill();
    expect(disk.contents('d/one').toString()).toBe('lostkept');
    disk.crash();
    expect(disk.contents('d/one').toString()).toBe('\0\0\0\0kept');
  });

  it('fails when told to, and when it is full', async () => {
    const { disk, file } = await diskWithFile(1);
    disk.failNext('sync');
    expect(await sync(file)).toMatchObject({ code: 'EIO' });
    expect(await sync(file)).toBeNull();
    disk.setCapacity(10);
    expect(await write(file, 0, Buffer.alloc(11))).toMatchObject({ code: 'ENOSPC' });
    await expect(file.preallocate(20)).rejects.toMatchObject({ code: 'ENOSPC' });
    expect(await write(file, 0, Buffer.alloc(10))).toBeNull();
  });
});
