import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Disk, type Engine, InvariantError, nodeClock, nodeDisk, SeededRandom, silentLogger } from '@remora/base';
import { SimDisk } from '@remora/base/testing';
import { type GroupLog, openGroupLog, type SnapshotReceiver } from '@remora/raft';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CrashWorld } from '../../test/support/crash-world.ts';
import { contents, digest, pieces, someRows, stateAt, streamOf, targetAt } from '../../test/support/install-data.ts';
import { DESCRIPTOR } from '../../test/support/state-bed.ts';
import { LevelStore } from '../engine/node/level-store.ts';
import { OverlayEngine } from '../engine/overlay-engine.ts';
import { StoreDamagedError } from '../engine/store-errors.ts';
import { RESIDENT_SPANS } from '../state/keys.ts';
import { discardUnfinishedSnapshots, type Endings, Installer, NO_ENDINGS } from './installer.ts';
import type { InstallMarker } from './marker.ts';
import { StagedFiles } from './staged-files.ts';

const turn = (): Promise<void> => new Promise((resolve) => nodeClock().setImmediate(resolve));
const turns = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i++) await turn();
};

describe('an installer', () => {
  const random = new SeededRandom(5);
  const rows = someRows(random, { small: 300, large: 6 });
  const fresh = digest([...rows, stateAt(20)]);
  let world: CrashWorld;
  let engine: Engine;
  let disk: Disk;
  let installer: Installer;
  let stream: Buffer;
  let old: string;
  let told: string[];
  let marked: Promise<readonly string[]> | undefined;

  beforeEach(async () => {
    world = new CrashWorld(3);
    stream = await streamOf(rows, 20);
    told = [];
    marked = undefined;
    await boot();
    for (const { key, value } of [...someRows(random, { small: 50, large: 1 }), stateAt(5)]) engine.put(key, value);
    await engine.checkpoint();
    old = await contents(engine);
  });

  async function boot(): Promise<void> {
    ({ engine, disk } = await world.boot());
    installer = new Installer({ engine, disk, logger: silentLogger });
  }

  function receive(): SnapshotReceiver {
    return installer.receive({
      ...targetAt(20),
      begins: () => {
        told.push('begins');
        return NO_ENDINGS;
      },
      replaced: () => told.push('replaced'),
    });
  }

  async function send(bytes: Buffer, progress?: () => void): Promise<void> {
    const receiver = receive();
    try {
      for (const piece of pieces(bytes, random)) await receiver.chunk(piece);
    } catch (error) {
      receiver.abort('it failed'); // as the host does
      throw error;
    }
    await receiver.finish(progress);
  }

  const damaged = (): Buffer => {
    const copy = Buffer.from(stream);
    copy[1_000_000] = (copy[1_000_000] ?? 0) ^ 4;
    return copy;
  };

  test.each<{ name: string; transfer: () => Promise<void>; says: string }>([
    { name: 'is damaged', transfer: () => send(damaged()), says: 'damaged' },
    { name: 'is cut', transfer: () => send(stream.subarray(0, -1)), says: 'ends too early' },
    { name: 'is empty', transfer: () => send(Buffer.alloc(0)), says: 'ends too early' },
    {
      name: 'does not fit on the disk',
      transfer: () => {
        world.sim.setCapacity(1_000_000);
        return send(stream).finally(() => world.sim.setCapacity(1_000_000_000));
      },
      says: 'cannot be staged: ENOSPC',
    },
    {
      name: 'meets a disk that fails to sync',
      transfer: () => {
        world.sim.failNext('sync');
        return send(stream);
      },
      says: 'cannot be staged: EIO',
    },
    {
      name: 'is given up',
      transfer: async () => {
        const receiver = receive();
        for (const piece of [...pieces(stream, random)].slice(0, 3)) await receiver.chunk(piece);
        receiver.abort('the sender went away');
        throw new Error('given up');
      },
      says: 'given up',
    },
  ])('leaves the replica as it was when a transfer $name, and takes the next one', async ({ transfer, says }) => {
    const error = await transfer().catch((thrown: unknown) => thrown);
    expect(error).not.toBeInstanceOf(InvariantError);
    expect(String(error)).toContain(says);
    await turns(5);
    expect(told).toEqual([]);
    expect(await contents(engine)).toBe(old);
    expect(await world.sim.list('snapshots')).toEqual([]);
    await send(stream);
    expect(told).toEqual(['begins', 'replaced']);
    expect(await contents(engine)).toBe(fresh);
    expect(await world.sim.list('snapshots')).toEqual([]);
    expect(world.failures).toEqual([]);
  });

  test('a replica whose state others rely on is replaced once that is durable', async () => {
    let settle = (): void => {};
    const settled = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const replaced = (): void => void told.push('replaced');
    const begins = (): Endings => {
      told.push('begins');
      return NO_ENDINGS;
    };
    const receiver = installer.receive({ ...targetAt(20), settled: () => settled, begins, replaced });
    for (const piece of pieces(stream, random)) await receiver.chunk(piece);
    const finished = receiver.finish();
    await turns(50);
    expect([told, await contents(engine)]).toEqual([[], old]);
    settle();
    await finished;
    expect(told).toEqual(['begins', 'replaced']);
  });

  test('a snapshot with keys that another range has here is refused before anything goes, and may come again', async () => {
    let other: number | undefined = 9;
    const target = {
      ...targetAt(20),
      sharing: () => other,
      begins: () => {
        told.push('begins');
        return NO_ENDINGS;
      },
      replaced: () => {},
    };
    const refused = installer.receive(target);
    const transfer = async (receiver: SnapshotReceiver): Promise<void> => {
      for (const piece of pieces(stream, random)) await receiver.chunk(piece);
      await receiver.finish();
    };
    await expect(transfer(refused)).rejects.toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
    refused.abort('it was refused');
    await turns(5);
    expect([told, await contents(engine), await world.sim.list('snapshots')]).toEqual([[], old, []]);
    other = undefined;
    const late = installer.receive(target);
    for (const piece of pieces(stream, random)) await late.chunk(piece);
    other = 9; // it came while the snapshot was on its way
    await expect(late.finish()).rejects.toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
    expect(await contents(engine)).toBe(old);
    other = undefined;
    await transfer(installer.receive(target));
    expect(await contents(engine)).toBe(fresh);
  });

  test('says which range is being replaced, from the marker until the rows are there', async () => {
    const spans = { start: Buffer.from([3, 7]), end: Buffer.from([3, 8]) };
    const seen: (number | undefined)[] = [];
    const receiver = installer.receive({
      ...targetAt(20),
      begins: () => {
        seen.push(installer.replacing(spans));
        return NO_ENDINGS;
      },
      replaced: () => seen.push(installer.replacing(spans)),
    });
    for (const piece of pieces(stream, random)) await receiver.chunk(piece);
    expect(installer.replacing(spans)).toBeUndefined();
    await receiver.finish();
    expect(seen).toEqual([2, undefined]);
  });

  test.each([0, 1, 2, 3])(
    'a disk that is full from batch %i on stops the node with advice, and the next start ends the work',
    async (batches) => {
      world.batchesUntilFull = batches;
      const error = await send(stream).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(InvariantError);
      expect(world.failures.map(({ message }) => message)).toEqual([(error as Error).message]);
      expect(String(error)).toMatch(
        /replica 11 of range 2 could not install .* No space left .* next start tries again/,
      );
      expect(told).toEqual(['begins']);
      world.batchesUntilFull = Number.POSITIVE_INFINITY;
      world.crash();
      await boot();
      const interrupted = installer.interrupted();
      // The marker itself did not fit: the replica has its old state.
      expect(interrupted.map(({ replicaId }) => replicaId)).toEqual(batches === 0 ? [] : [11]);
      for (const marker of interrupted) await installer.resume(marker);
      await installer.clean();
      expect(await contents(engine)).toBe(batches === 0 ? old : fresh);
      expect(await world.sim.list('snapshots')).toEqual([]);
    },
  );

  /** The marker of an installation that a crash interrupted. */
  async function interrupted(): Promise<InstallMarker> {
    world.batchesUntilFull = 2;
    await send(stream).catch(() => undefined);
    world.batchesUntilFull = Number.POSITIVE_INFINITY;
    world.crash();
    await boot();
    const [marker] = installer.interrupted();
    if (marker === undefined) throw new Error('there is a marker');
    return marker;
  }

  test('a marker whose file is gone stops the node: the engine has lost that it was installed', async () => {
    const marker = await interrupted();
    await disk.remove(`snapshots/${marker.file}`);
    await expect(installer.resume(marker)).rejects.toThrow(StoreDamagedError);
    expect(installer.replacing(DESCRIPTOR)).toBe(2);
  });

  test.each(['damaged', 'cut'] as const)('a staged file that is %s stops the node, and says so', async (what) => {
    const marker = await interrupted();
    const path = `snapshots/${marker.file}`;
    if (what === 'damaged') world.sim.corrupt(path, 1_000_000);
    else await (await disk.open(path, { create: false })).truncate(marker.bytes - 1);
    await expect(installer.resume(marker)).rejects.toThrow(InvariantError);
    expect(world.failures.at(-1)?.message).toMatch(/if the file is damaged, remove this replica/);
    expect(installer.replacing(DESCRIPTOR)).toBe(2);
  });

  test('a node that stops meanwhile waits for no more than a batch, and the next start ends the work', async () => {
    let settled = false;
    const receiver = receive();
    for (const piece of pieces(stream, random)) await receiver.chunk(piece);
    void receiver.finish().finally(() => {
      settled = true;
    });
    for (let i = 0; i < 500 && told.length === 0; i++) await turn();
    expect(told).toEqual(['begins']);
    installer.stop();
    await engine.close();
    await turns(5);
    expect([settled, told]).toEqual([false, ['begins']]);
    expect(world.failures).toEqual([]);
    await boot();
    for (const marker of installer.interrupted()) await installer.resume(marker);
    expect(await contents(engine)).toBe(fresh);
  });

  // A node whose disk a snapshot had filled could not open its log any more, while the rest of the snapshot lay there.
  test('what was received in part goes before anything is opened, and nothing that a marker may name', async () => {
    const receiver = receive();
    for (const piece of pieces(stream.subarray(0, stream.length / 2), random)) await receiver.chunk(piece);
    await send(stream, () => {
      if (marked === undefined && installer.replacing(DESCRIPTOR) !== undefined) marked = disk.list('snapshots');
    });
    const left = await disk.list('snapshots');
    expect(left).toEqual(['2-1.snapshot.part']);
    expect(await marked).toEqual(['2-1.snapshot.part', '2-2.snapshot']);
    await discardUnfinishedSnapshots(disk);
    expect(await disk.list('snapshots')).toEqual([]);
  });

  test('holds no more than a batch at a time, however large the snapshot, and shows its progress', async () => {
    const many = Array.from({ length: 12_000 }, (_, i) => {
      const key = Buffer.from([3, 0, 0, 0, 0]);
      key.writeUInt32BE(i, 1);
      return { key, value: Buffer.alloc(2_000, i) };
    });
    let pendingMax = 0;
    let done = false;
    const large = await streamOf(many, 20);
    world.bytesAtOnceMax = 0;
    const watching = (async () => {
      while (!done) {
        pendingMax = Math.max(pendingMax, engine.pending().bytes);
        await turn();
      }
    })();
    let steps = 0;
    await send(large, () => steps++);
    done = true;
    await watching;
    expect(large.length).toBeGreaterThan(24_000_000);
    expect(world.bytesAtOnceMax).toBeLessThan(1_100_000);
    expect(pendingMax).toBe(0);
    expect(steps).toBeGreaterThan(24); // whoever waits sees each of them
    expect(await contents(engine)).toBe(digest([...many, stateAt(20)]));
  });

  test('removes what an earlier life of the node left behind, and does not touch what comes in meanwhile', async () => {
    const receiver = receive();
    await receiver.chunk(stream.subarray(0, 500_000));
    await boot();
    expect(await world.sim.list('snapshots')).toEqual(['2-1.snapshot.part']);
    const cleaning = installer.clean();
    await send(stream);
    await cleaning;
    expect(await contents(engine)).toBe(fresh);
    expect(await world.sim.list('snapshots')).toEqual([]);
  });
});

test('a node whose disk is full of a part of a snapshot opens its log again', async () => {
  const disk = new SimDisk({ random: new SeededRandom(1), capacityBytes: 3 * 2 ** 20 });
  const open = (): Promise<GroupLog> =>
    openGroupLog({
      ...{ disk, dir: 'log', logger: silentLogger, onFailure: () => {} },
      options: { segmentBytes: 2 ** 20 },
    });
  const files = new StagedFiles(disk, 'snapshots');
  await files.discardExcept(new Set());
  await (await files.create(2)).append(Buffer.alloc(2.5 * 2 ** 20));
  await expect(open()).rejects.toThrow('no space left');
  await discardUnfinishedSnapshots(disk);
  await (await open()).close();
});

describe('an installation on LevelDB', () => {
  // LevelDB's own table is never full: a copy of its files shows one moment only while nothing is compacted.
  const TUNING = { cacheBytes: 1 << 20, writeBufferBytes: 64 << 20 };
  let root: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'remora-install-'));
  });
  afterEach(() => rm(root, { recursive: true }));

  async function open(dir: string, beforeBatch: () => Promise<void> = async () => {}): Promise<Engine> {
    const store = await LevelStore.open(join(dir, 'engine'), TUNING);
    const makeBatch = store.batch.bind(store);
    store.batch = () => {
      const batch = makeBatch();
      const write = batch.write.bind(batch);
      return { ...batch, write: async () => beforeBatch().then(write) };
    };
    const deps = { options: { resident: RESIDENT_SPANS }, clock: nodeClock(), logger: silentLogger };
    return OverlayEngine.open(store, {
      ...deps,
      onFailure: (error) => {
        throw error;
      },
    });
  }

  test('killed before any of its batches it leaves the old state, or is ended by the next start', async () => {
    const random = new SeededRandom(11);
    const rows = someRows(random, { small: 4_500, large: 6 });
    const [stream, fresh] = [await streamOf(rows, 20), digest([...rows, stateAt(20)])];
    const dir = join(root, 'live');
    const copies: string[] = [];
    let copying = false;
    const engine = await open(dir, async () => {
      if (!copying) return;
      const copy = join(root, `copy-${copies.length}`);
      await cp(dir, copy, { recursive: true });
      copies.push(copy);
    });
    for (const { key, value } of [...someRows(random, { small: 2_500, large: 2 }), stateAt(5)]) engine.put(key, value);
    await engine.checkpoint();
    const old = await contents(engine);
    const installer = new Installer({ engine, disk: nodeDisk(dir, { syncInPlace: false }), logger: silentLogger });
    await installer.clean();
    const target = { ...targetAt(20), begins: () => NO_ENDINGS, replaced() {} };
    const receiver = installer.receive(target);
    for (const piece of pieces(stream, random)) await receiver.chunk(piece);
    copying = true;
    await receiver.finish();
    expect(await contents(engine)).toBe(fresh);
    await engine.close();
    expect(copies.length).toBeGreaterThan(5);
    for (const [i, copy] of copies.entries()) {
      const again = await open(copy);
      const next = new Installer({ engine: again, disk: nodeDisk(copy, { syncInPlace: false }), logger: silentLogger });
      const interrupted = next.interrupted();
      expect(interrupted.length, `copy ${i}`).toBe(i === 0 ? 0 : 1);
      for (const marker of interrupted) await next.resume(marker);
      await next.clean();
      expect(await contents(again), `copy ${i}`).toBe(i === 0 ? old : fresh);
      expect(await readdir(join(copy, 'snapshots'))).toEqual([]);
      await again.close();
    }
  });
});
