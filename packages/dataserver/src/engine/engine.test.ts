import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Engine, silentLogger, utf8 } from '@remora/base';
import { Level } from 'level';
import { describe, expect, it } from 'vitest';
import { CONTRACT_RESIDENT, describeEngine, span, textRows, turningClock } from '../../test/support/engine-contract.ts';
import { MemoryEngine } from '../testing/memory-engine.ts';
import { MemoryMedium, MemoryStore } from '../testing/memory-store.ts';
import type { EngineDeps } from './engine-deps.ts';
import { ENGINE_FORMAT_VERSION } from './format.ts';
import { openLevelEngine } from './node/level-engine.ts';
import { OverlayEngine } from './overlay-engine.ts';
import { StoreDamagedError } from './store-errors.ts';

const DEPS: EngineDeps = {
  options: { resident: CONTRACT_RESIDENT },
  clock: turningClock((fn) => void setImmediate(fn)),
  logger: silentLogger,
  onFailure(error) {
    throw error;
  },
};

describeEngine('memory engine', async () => {
  const engine = new MemoryEngine(DEPS);
  return {
    engine,
    async crash() {
      engine.crash();
      return engine;
    },
    stop: () => engine.close(),
  };
});

describeEngine('LevelDB engine', async () => {
  const root = await mkdtemp(join(tmpdir(), 'remora-engine-'));
  let engine: Engine = await openLevelEngine({ ...DEPS, dir: join(root, 'a') });
  const first = engine;
  return {
    engine,
    async crash() {
      // The files as they are now, opened elsewhere, are what a killed process leaves.
      await cp(join(root, 'a'), join(root, 'b'), { recursive: true });
      engine = await openLevelEngine({ ...DEPS, dir: join(root, 'b') });
      return engine;
    },
    async stop() {
      await Promise.all([first.close(), engine.close()]);
      await rm(root, { recursive: true });
    },
  };
});

describe('opening a LevelDB engine', () => {
  async function inDir(run: (dir: string) => Promise<void>): Promise<void> {
    const dir = await mkdtemp(join(tmpdir(), 'remora-engine-'));
    await run(dir).finally(() => rm(dir, { recursive: true }));
  }

  it('is refused while another has the directory open', () =>
    inDir(async (dir) => {
      const engine = await openLevelEngine({ ...DEPS, dir });
      await expect(openLevelEngine({ ...DEPS, dir })).rejects.toMatchObject({ code: 'LOCKED' });
      await engine.close();
      await (await openLevelEngine({ ...DEPS, dir })).close();
    }));

  it.each(['1', '2'])('raises format %s, from when on an older program refuses it', (format) =>
    inDir(async (dir) => {
      const db = new Level(dir);
      await db.batch([
        { type: 'put', key: '', value: format },
        { type: 'put', key: 'k', value: 'old' },
      ]);
      await db.close();
      for (let starts = 0; starts < 2; starts++) {
        const engine = await openLevelEngine({ ...DEPS, dir });
        expect(textRows(await engine.scan(span('', '')))).toEqual(['k=old']);
        await engine.close();
      }
      await db.open();
      expect(Number(await db.get(''))).toBe(ENGINE_FORMAT_VERSION);
      await db.close();
    }),
  );

  /** Flips a bit of `text` where it stands in a table of LevelDB. */
  async function flipInTable(dir: string, text: string): Promise<void> {
    const db = new Level(dir);
    await db.open(); // makes a table of what its log holds
    await db.close();
    const flips = readdirSync(dir).filter((name) => {
      const path = join(dir, name);
      const bytes = readFileSync(path);
      const at = name.endsWith('.ldb') ? bytes.indexOf(text) : -1;
      if (at < 0) return false;
      bytes[at] = (bytes[at] ?? 0) ^ 1;
      writeFileSync(path, bytes);
      return true;
    });
    expect(flips).toHaveLength(1);
  }

  it('does not give out a value in whose table a bit has flipped', () =>
    inDir(async (dir) => {
      const engine = await openLevelEngine({ ...DEPS, dir });
      engine.put(utf8('k1'), utf8('first'));
      engine.put(utf8('k2'), utf8('second'));
      await engine.checkpoint();
      await engine.close();
      await flipInTable(dir, 'second');
      const failures: Error[] = [];
      const again = await openLevelEngine({ ...DEPS, dir, onFailure: (error) => failures.push(error) });
      expect(again.get(utf8('k1'))).toEqual(Buffer.from('first'));
      expect(() => again.get(utf8('k2'))).toThrow(StoreDamagedError);
      expect(failures.map((error) => error.message)).toEqual([
        expect.stringContaining(`${dir}: the checksum of row 6b32`),
      ]);
      await again.close();
    }));

  it('is refused when a row that it keeps in memory is damaged, and lets go of the directory', () =>
    inDir(async (dir) => {
      const engine = await openLevelEngine({ ...DEPS, dir });
      engine.put(utf8('r1'), utf8('resident'));
      await engine.checkpoint();
      await engine.close();
      await flipInTable(dir, 'resident');
      for (let starts = 0; starts < 2; starts++) {
        await expect(openLevelEngine({ ...DEPS, dir })).rejects.toThrow(StoreDamagedError);
      }
    }));

  /** Checkpoints of one row each, in LevelDB's log: a large one parts those before it from those behind it. */
  async function checkpoints(dir: string, values: readonly string[]): Promise<void> {
    const engine = await openLevelEngine({ ...DEPS, dir });
    for (const [i, value] of values.entries()) {
      engine.put(utf8(`k${i}`), utf8(value));
      await engine.checkpoint();
    }
    await engine.close();
  }

  /** Flips a bit of `text` where it stands in LevelDB's log. */
  function flipInLog(dir: string, text: string): void {
    const [name, ...others] = readdirSync(dir).filter((file) => file.endsWith('.log'));
    expect([others, name]).toEqual([[], expect.any(String)]);
    const path = join(dir, name ?? '');
    const bytes = readFileSync(path);
    const at = bytes.indexOf(text);
    expect(at).toBeGreaterThan(0);
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(path, bytes);
  }
  const LARGER_THAN_A_BLOCK = 'x'.repeat(40_000);

  it('is refused when LevelDB has dropped a checkpoint before others', () =>
    inDir(async (dir) => {
      await checkpoints(dir, ['first', 'second', LARGER_THAN_A_BLOCK, 'last']);
      flipInLog(dir, 'second');
      for (let starts = 0; starts < 2; starts++) {
        await expect(openLevelEngine({ ...DEPS, dir })).rejects.toThrow(/one or more of the batches 2 to 3 .*missing/);
      }
    }));

  it('is refused when LevelDB has dropped all that it held, but what came last', () =>
    inDir(async (dir) => {
      await checkpoints(dir, ['first', LARGER_THAN_A_BLOCK, 'last']);
      flipInLog(dir, '4\n');
      await expect(openLevelEngine({ ...DEPS, dir })).rejects.toThrow('the first batch written to it is missing');
    }));

  it('is what it was before, when LevelDB has dropped the last checkpoints', () =>
    inDir(async (dir) => {
      await checkpoints(dir, ['first', LARGER_THAN_A_BLOCK, 'second', 'last']);
      flipInLog(dir, 'second');
      const engine = await openLevelEngine({ ...DEPS, dir });
      expect((await engine.scan(span('', ''))).map(({ key }) => Buffer.from(key).toString())).toEqual(['k0', 'k1']);
      await engine.close();
    }));

  it('is refused when LevelDB finds its files damaged', () =>
    inDir(async (dir) => {
      await (await openLevelEngine({ ...DEPS, dir })).close();
      writeFileSync(join(dir, 'CURRENT'), 'MANIFEST');
      await expect(openLevelEngine({ ...DEPS, dir })).rejects.toThrow(StoreDamagedError);
    }));

  it.each([
    { name: 'a newer format', rows: [['', String(ENGINE_FORMAT_VERSION + 1)]], code: 'NEWER_FORMAT' },
    { name: 'a format that never was', rows: [['', '0']], code: 'UNREADABLE' },
    { name: 'an unknown format', rows: [['', 'x']], code: 'UNREADABLE' },
    { name: 'a database of another program', rows: [['their', 'row']], code: 'UNREADABLE' },
  ])('is refused for $name, and lets go of the directory', ({ rows, code }) =>
    inDir(async (dir) => {
      const db = new Level(dir);
      for (const [key, value] of rows) await db.put(key ?? '', value ?? '');
      await db.close();
      await expect(openLevelEngine({ ...DEPS, dir })).rejects.toMatchObject({ name: 'StoreOpenError', code });
      await db.open();
      await db.close();
    }),
  );
});

describe('overlay engine', () => {
  it('never retries a failed write: it reports once and refuses what follows', async () => {
    const store = new MemoryStore(new MemoryMedium());
    let writes = 0;
    store.batch = () => ({
      put() {},
      delete() {},
      async write() {
        writes++;
        throw new Error('disk full');
      },
    });
    const failures: Error[] = [];
    const engine = await OverlayEngine.open(store, { ...DEPS, onFailure: (error) => failures.push(error) });
    engine.put(utf8('k'), utf8('v'));
    const both = [engine.checkpoint(), engine.checkpoint(), engine.clearSpan(span('a', 'b'))];
    for (const promise of both) await expect(promise).rejects.toThrow('disk full');
    await expect(engine.checkpoint()).rejects.toThrow('disk full');
    expect(failures.map((error) => error.message)).toEqual(['disk full']);
    expect(writes).toBe(1);
  });

  it('writes nothing before the log is durable', async () => {
    const medium = new MemoryMedium();
    let durable = (): void => {};
    const logDurable = (): Promise<void> =>
      new Promise((resolve) => {
        durable = resolve;
      });
    const engine = await OverlayEngine.open(new MemoryStore(medium), { ...DEPS, logDurable });
    engine.put(utf8('k'), utf8('v'));
    const checkpoint = engine.checkpoint();
    await new Promise((resolve) => setImmediate(resolve));
    expect([...medium.all()]).toEqual([]);
    durable();
    await checkpoint;
    expect(textRows([...medium.all()])).toEqual(['k=v']);
  });

  /** A rebuild whose writes wait for `open` from the `gated`th on, under a log that is not durable before `durable`. */
  async function rebuilding(gated: number) {
    const store = new MemoryStore(new MemoryMedium());
    const [order, failures]: [string[], Error[]] = [[], []];
    let [open, durable]: (() => void)[] = [];
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const makeBatch = store.batch.bind(store);
    store.batch = () => {
      const batch = makeBatch();
      const write = async (): Promise<void> => {
        if (order.length + 1 >= gated) await gate;
        await batch.write();
        order.push('written');
      };
      return { put: batch.put, delete: batch.delete, write };
    };
    store.close = async () => void order.push('closed');
    const log = new Promise<void>((resolve) => {
      durable = resolve;
    });
    const deps = { ...DEPS, logDurable: () => log, onFailure: (error: Error) => void failures.push(error) };
    const engine = await OverlayEngine.open(store, deps);
    const rebuild = (): Promise<string> =>
      engine
        .rebuild({
          ...{ spans: [span('k2', 'k4')], marker: { key: utf8('r-marker'), value: utf8('m') } },
          rows: (async function* () {})(),
          ...{ replaced() {}, progress() {} },
          failure: (cause) => new Error(`failed: ${String(cause)}`),
        })
        .then(
          () => 'done',
          (error: unknown) => String(error),
        );
    return { engine, rebuild, order, failures, open: () => open?.(), durable: () => durable?.() };
  }
  const turns = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
  };

  it('closes its store behind the step of a rebuild that is under way', async () => {
    const { engine, rebuild, order, failures, open } = await rebuilding(2);
    const ended = rebuild();
    await turns();
    const closed = engine.close();
    await turns();
    expect(order).toEqual(['written']);
    open();
    expect(await ended).toBe('done');
    await closed;
    expect([order, failures]).toEqual([['written', 'written', 'closed'], []]);
  });

  it('ends a rebuild when it is closed during a checkpoint, and that is no failure', async () => {
    const { engine, rebuild, failures, open, durable } = await rebuilding(1);
    engine.put(utf8('k1'), utf8('v'));
    const ended = rebuild();
    await turns();
    const checkpoint = engine.checkpoint();
    open();
    const closed = engine.close();
    expect(await ended).toBe('EngineClosedError: the engine is closed');
    durable();
    await Promise.all([checkpoint, closed]);
    expect(failures).toEqual([]);
  });
});
