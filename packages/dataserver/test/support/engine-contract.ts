import {
  type Bytes,
  type Clock,
  type Engine,
  type EngineView,
  InvariantError,
  nodeClock,
  type Row,
  type ScanOptions,
  utf8,
} from '@remora/base';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { nextTurn } from '../../src/engine/merge.ts';

/** The resident key space of every engine under the suite: keys that begin with `r`. */
export const CONTRACT_RESIDENT = [{ start: utf8('r'), end: utf8('s') }] as const;

/** Turns are real, time stands still: the engine needs no more of a clock. */
export function turningClock(nextTurn: Clock['setImmediate']): Clock {
  return {
    wallMs: () => 0,
    monotonicMs: () => 0,
    setTimer() {
      throw new Error('the engine sets no timers');
    },
    setImmediate: nextTurn,
  };
}

export interface EngineUnderTest {
  readonly engine: Engine;
  /** Loses what a crash loses, and opens again on what is left. */
  crash(): Promise<Engine>;
  stop(): Promise<void>;
}

export function textRows(rows: readonly Row[]): string[] {
  return rows.map((row) => `${Buffer.from(row.key)}=${Buffer.from(row.value)}`);
}

export function span(start: string, end: string, more: Omit<ScanOptions, 'start' | 'end'> = {}): ScanOptions {
  return { start: utf8(start), end: utf8(end), ...more };
}

async function viewRows(view: EngineView, options: ScanOptions): Promise<string[]> {
  const out: string[] = [];
  for await (const batch of view.scan(options)) out.push(...textRows(batch));
  return out;
}

function text(value: Bytes | undefined): string | undefined {
  return value === undefined ? undefined : Buffer.from(value).toString();
}

/** What every engine promises, whatever is under it. */
export function describeEngine(name: string, start: () => Promise<EngineUnderTest>): void {
  describe(name, () => {
    let test: EngineUnderTest;
    let engine: Engine;
    const put = (key: string, value: string): void => engine.put(utf8(key), utf8(value));
    const del = (key: string): void => engine.delete(utf8(key));
    const get = (key: string): string | undefined => text(engine.get(utf8(key)));
    const all = async (): Promise<string[]> => textRows(await engine.scan(span('', '')));

    beforeEach(async () => {
      test = await start();
      engine = test.engine;
    });
    afterEach(() => test.stop());

    it('a put and a delete are visible at once, before and after a checkpoint', async () => {
      for (const key of ['k1', 'r1']) {
        put(key, 'a');
        expect(get(key)).toBe('a');
        await engine.checkpoint();
        expect(get(key)).toBe('a');
        put(key, 'b');
        expect(get(key)).toBe('b');
        del(key);
        expect(get(key)).toBeUndefined();
        await engine.checkpoint();
        expect(get(key)).toBeUndefined();
      }
      expect(await all()).toEqual([]);
    });

    it('an empty value is a value', async () => {
      put('k', '');
      expect(get('k')).toBe('');
      await engine.checkpoint();
      expect(get('k')).toBe('');
      expect(await all()).toEqual(['k=']);
    });

    it('scans merge changes with what is on disk, in byte order, both ways and limited', async () => {
      for (const key of ['k1', 'k3', 'k5', 'r1', 'r3']) put(key, 'old');
      await engine.checkpoint();
      put('k2', 'new');
      put('k3', 'new');
      del('k5');
      put('r2', 'new');
      del('r3');
      const expected = ['k1=old', 'k2=new', 'k3=new', 'r1=old', 'r2=new'];
      expect(await all()).toEqual(expected);
      expect(textRows(await engine.scan(span('', '', { reverse: true })))).toEqual(expected.toReversed());
      expect(textRows(await engine.scan(span('k2', 'r2')))).toEqual(expected.slice(1, 4));
      expect(textRows(await engine.scan(span('k2', 'r2', { limit: 2, reverse: true })))).toEqual(['r1=old', 'k3=new']);
      expect(textRows(await engine.scan(span('k9', 'k1')))).toEqual([]);
    });

    it('keys are ordered as unsigned bytes', async () => {
      const keys = [[0x6b], [0x6b, 0x00], [0x6b, 0x7f], [0x6b, 0x80], [0x6b, 0xff], [0x6b, 0xff, 0xff], [0x6c]];
      for (const key of keys.toReversed()) engine.put(Uint8Array.from(key), utf8('v'));
      const read = async (): Promise<number[][]> => (await engine.scan(span('', ''))).map((row) => [...row.key]);
      expect(await read()).toEqual(keys);
      await engine.checkpoint();
      expect(await read()).toEqual(keys);
    });

    it('a resident scan is synchronous and refuses any other key space', async () => {
      for (const key of ['r1', 'r2', 'r3', 'k']) put(key, 'v');
      await engine.checkpoint();
      del('r2');
      expect(textRows(engine.scanResident(span('r', 's')))).toEqual(['r1=v', 'r3=v']);
      expect(textRows(engine.scanResident(span('r', 's', { reverse: true, limit: 1 })))).toEqual(['r3=v']);
      for (const outside of [span('k', 's'), span('r', ''), span('r', 't'), span('', 's')]) {
        expect(() => engine.scanResident(outside)).toThrow(InvariantError);
      }
    });

    it('a scan shows the moment of its call although changes and checkpoints go on', async () => {
      put('k1', 'a');
      put('k2', 'a');
      put('r1', 'a');
      await engine.checkpoint();
      put('k3', 'a');
      const scan = engine.scan(span('', ''));
      put('k1', 'b');
      del('k2');
      put('k4', 'b');
      put('r1', 'b');
      const checkpoint = engine.checkpoint();
      put('k5', 'c');
      expect(textRows(await scan)).toEqual(['k1=a', 'k2=a', 'k3=a', 'r1=a']);
      await checkpoint;
      expect(await all()).toEqual(['k1=b', 'k3=a', 'k4=b', 'k5=c', 'r1=b']);
    });

    it('a view stays as it was taken until it is released', async () => {
      for (const key of ['k1', 'k2', 'r1', 'r2']) put(key, 'a');
      await engine.checkpoint();
      put('k3', 'a');
      const view = engine.view();
      put('k1', 'b');
      put('k3', 'b');
      del('k2');
      del('r1');
      put('r3', 'b');
      await engine.checkpoint();
      await engine.clearSpan(span('r2', 'r3'));
      expect(await viewRows(view, span('', ''))).toEqual(['k1=a', 'k2=a', 'k3=a', 'r1=a', 'r2=a']);
      expect(await viewRows(view, span('r', 's', { reverse: true }))).toEqual(['r2=a', 'r1=a']);
      expect(['k1', 'k2', 'k3', 'r1', 'r2', 'r3'].map((key) => text(view.get(utf8(key))))).toEqual([
        ...['a', 'a', 'a', 'a', 'a'],
        undefined,
      ]);
      view.release();
      expect(() => view.get(utf8('k1'))).toThrow(InvariantError);
      expect(await all()).toEqual(['k1=b', 'k3=b', 'r3=b']);
    });

    it('a long view comes in several batches of bounded size', async () => {
      const rows = 3000;
      for (let i = 0; i < rows; i++) {
        put(`k${String(i).padStart(5, '0')}`, 'x');
        if (i === rows / 2) await engine.checkpoint();
      }
      const view = engine.view();
      const sizes: number[] = [];
      for await (const batch of view.scan(span('', ''))) sizes.push(batch.length);
      view.release();
      expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(rows);
      expect(Math.max(...sizes)).toBeLessThanOrEqual(512);
    });

    it('a crash returns exactly to the last checkpoint', async () => {
      put('k1', 'a');
      put('r1', 'a');
      await engine.checkpoint();
      put('k1', 'b');
      put('k2', 'b');
      del('r1');
      put('r2', 'b');
      engine = await test.crash();
      expect(await all()).toEqual(['k1=a', 'r1=a']);
      expect(textRows(engine.scanResident(span('r', 's')))).toEqual(['r1=a']);
      expect(engine.pending()).toEqual({ bytes: 0, keys: 0 });
    });

    it('a hook puts what belongs to the checkpoint that is about to begin', async () => {
      let applied = 0;
      const unregister = engine.onCheckpoint(() => put('r-applied', String(applied)));
      applied = 7;
      put('k', 'v');
      await engine.checkpoint();
      unregister();
      applied = 8;
      await engine.checkpoint();
      engine = await test.crash();
      expect(await all()).toEqual(['k=v', 'r-applied=7']);
    });

    it('checkpoints asked for together are durable together', async () => {
      put('k1', 'a');
      const first = engine.checkpoint();
      put('k2', 'a');
      const second = engine.checkpoint();
      put('k3', 'a');
      const third = engine.checkpoint();
      expect(third).toBe(second);
      await Promise.all([first, second, third]);
      engine = await test.crash();
      expect(await all()).toEqual(['k1=a', 'k2=a', 'k3=a']);
    });

    it('pending counts what waits, and nothing for a resident row that came and went', async () => {
      put('k1', 'abc');
      put('r1', 'abc');
      expect(engine.pending()).toEqual({ bytes: 10, keys: 2 });
      del('r1');
      put('k1', 'a');
      expect(engine.pending()).toEqual({ bytes: 3, keys: 1 });
      await engine.checkpoint();
      expect(engine.pending()).toEqual({ bytes: 0, keys: 0 });
    });

    it('a link is a row without a value, counts as one, and is gone without a trace, written or not', async () => {
      const link = (to: string) => ({ from: 'r1/', to, under: `head of ${to}` });
      engine.link(link('a'), true);
      engine.link(link('b'), true);
      engine.link(link('b'), false);
      engine.link({ ...link('b'), from: 'r2/' }, false);
      engine.link(link('c'), true);
      engine.unlink(link('c'));
      expect(['a', 'b', 'c'].map((to) => engine.isLinked(link(to)))).toEqual([true, true, false]);
      expect(engine.pending()).toEqual({ bytes: 12, keys: 3 });
      expect(textRows(engine.scanResident(span('r', 's')))).toEqual(['r1/a=', 'r1/b=', 'r2/b=']);
      expect(engine.pending()).toEqual({ bytes: 12, keys: 3 });
      engine.link(link('c'), true);
      await engine.checkpoint();
      expect(await all()).toEqual(['r1/a=', 'r1/b=', 'r1/c=', 'r2/b=']);
      expect(['a', 'b', 'd'].map((to) => engine.isLinked(link(to)))).toEqual([true, true, false]);
      engine.unlink(link('b'));
      engine.link(link('d'), true);
      engine.unlink(link('d'));
      await engine.checkpoint();
      engine = await test.crash();
      expect(await all()).toEqual(['r1/a=', 'r1/c=', 'r2/b=']);
    });

    it('a cleared span is empty at once and after a crash; rows put meanwhile survive', async () => {
      for (const key of ['k1', 'k2', 'k3', 'r1', 'r2']) put(key, 'a');
      const running = engine.checkpoint();
      put('k2x', 'a');
      const cleared = [engine.clearSpan(span('k2', 'k3')), engine.clearSpan(span('r1', 'r2'))];
      const waiting = engine.checkpoint();
      put('k2y', 'b');
      put('r1', 'b');
      const expected = ['k1=a', 'k2y=b', 'k3=a', 'r1=b', 'r2=a'];
      expect(get('k2')).toBeUndefined();
      expect(await all()).toEqual(expected);
      await Promise.all([running, ...cleared, waiting]);
      expect(await all()).toEqual(expected);
      engine = await test.crash();
      expect(await all()).toEqual(expected);
    });

    const marker = { key: utf8('r-marker'), value: utf8('m') };
    /** Rebuilds `k2` to `k4` and `r2` to `r4` from rows that come as the test lets them. */
    function rebuilding(): { readonly done: Promise<void>; readonly give: (...rows: string[]) => void; end(): void } {
      const queue: (string[] | 'end')[] = [];
      let wake = (): void => {};
      async function* rows(): AsyncGenerator<Row[]> {
        for (;;) {
          const next = queue.shift();
          if (next === 'end') return;
          if (next !== undefined) yield next.map((row) => ({ key: utf8(row), value: utf8('new') }));
          else
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
        }
      }
      const push = (item: string[] | 'end'): void => {
        queue.push(item);
        wake();
      };
      const done = engine.rebuild({
        spans: [span('k2', 'k4'), span('r2', 'r4')],
        marker,
        rows: rows(),
        replaced: () => put('told', text(engine.get(utf8('k2'))) ?? 'nothing'),
        progress() {},
        failure: (cause) => new Error(`rebuilding failed: ${String(cause)}`),
      });
      done.catch(() => undefined);
      return { done, give: (...given) => push(given), end: () => push('end') };
    }
    const turns = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) await nextTurn(nodeClock());
    };
    const beforeRebuilding = async (): Promise<void> => {
      for (const key of ['k1', 'k2', 'k3', 'k4', 'r1', 'r2', 'r3', 'r4']) put(key, 'old');
      await engine.checkpoint();
      for (const key of ['k3', 'k3x', 'r3', 'r3x']) put(key, 'in memory');
      del('k2');
    };

    it('a rebuilt span holds the new rows and nothing else, at once and after a crash; the rest is untouched', async () => {
      await beforeRebuilding();
      const { done, give, end } = rebuilding();
      give('k2', 'r2x');
      end();
      await done;
      const expected = ['k1=old', 'k2=new', 'k4=old', 'r1=old', 'r2x=new', 'r4=old'];
      expect(await all()).toEqual([...expected, 'told=new']);
      expect(textRows(engine.scanResident(span('r', 's')))).toEqual(['r1=old', 'r2x=new', 'r4=old']);
      engine = await test.crash();
      expect(await all()).toEqual(expected);
      expect(textRows(engine.scanResident(span('r', 's')))).toEqual(['r1=old', 'r2x=new', 'r4=old']);
    });

    it('a span that is being rebuilt is empty and not to be changed, and a checkpoint of the rest goes on', async () => {
      await beforeRebuilding();
      const before = engine.view();
      const { done, give, end } = rebuilding();
      give('k2', 'r2');
      await turns(20);
      const rest = ['k1=old', 'k4=old', 'r-marker=m', 'r1=old', 'r4=old'];
      expect(await all()).toEqual(rest);
      expect([get('k2'), get('k3'), get('r2'), get('r3')]).toEqual([undefined, undefined, undefined, undefined]);
      expect(textRows(engine.scanResident(span('r', 's')))).toEqual(rest.slice(2));
      expect(() => put('k2', 'v')).toThrow(InvariantError);
      expect(() => del('r3')).toThrow(InvariantError);
      expect(() => engine.clearSpan(span('k3', 'k5'))).toThrow(InvariantError);
      put('k5', 'meanwhile');
      await engine.checkpoint();
      const during = engine.view();
      give('k3');
      end();
      await done;
      const fresh = ['k1=old', 'k2=new', 'k3=new', 'k4=old', 'k5=meanwhile', 'r1=old', 'r2=new', 'r4=old'];
      expect(await all()).toEqual([...fresh, 'told=new']);
      expect(await viewRows(during, span('', ''))).toEqual([...rest.slice(0, 2), 'k5=meanwhile', ...rest.slice(2)]);
      expect(text(during.get(utf8('r2')))).toBeUndefined();
      expect(await viewRows(before, span('k2', 'k4'))).toEqual(['k3=in memory', 'k3x=in memory']);
      expect(await viewRows(before, span('r2', 'r4'))).toEqual(['r2=old', 'r3=in memory', 'r3x=in memory']);
      for (const view of [before, during]) view.release();
    });

    it('a crash while a span is being rebuilt leaves the marker, and doing it again mends the span', async () => {
      await beforeRebuilding();
      const first = rebuilding();
      first.give('k2', 'r2');
      await turns(20);
      engine = await test.crash();
      first.end();
      expect(get('r-marker')).toBe('m');
      const { done, give, end } = rebuilding();
      give('k3', 'r3');
      end();
      await done;
      expect(await all()).toEqual(['k1=old', 'k3=new', 'k4=old', 'r1=old', 'r3=new', 'r4=old', 'told=nothing']);
    });

    it('closing ends a rebuild without a failure, and leaves the marker', async () => {
      await beforeRebuilding();
      const { done, give, end } = rebuilding();
      await turns(20);
      const closed = engine.close();
      give('k2');
      end();
      await expect(done).rejects.toThrow('closed');
      await closed;
      engine = await test.crash();
      expect(get('r-marker')).toBe('m');
    });

    it('after close nothing is accepted', async () => {
      put('k', 'v');
      const running = engine.checkpoint();
      await engine.close();
      await running;
      expect(() => put('k', 'w')).toThrow(InvariantError);
      await expect(engine.checkpoint()).rejects.toThrow('closed');
      await expect(engine.clearSpan(span('', ''))).rejects.toThrow('closed');
      await expect(engine.scan(span('', ''))).rejects.toThrow('closed');
    });
  });
}
