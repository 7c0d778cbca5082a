import { describe, expect, it } from 'vitest';
import { fromJsonLines, type HistoryRecord, HistoryRecorder, partitionByKey, toJsonLines } from './index.ts';

describe('history', () => {
  it('a recorder notes begin and end, and counts what has no answer as unknown', () => {
    let now = 0;
    const recorder = new HistoryRecorder(() => ++now);
    const put = recorder.begin({ c: 1, k: 'a', op: 'put', v: 'x' });
    const get = recorder.begin({ c: 2, k: 'a', op: 'get' });
    const lost = recorder.begin({ c: 3, k: 'b', op: 'del' });
    const refused = recorder.begin({ c: 4, k: 'b', op: 'del' });
    get.done({ ok: true, out: null });
    put.done({ ok: true });
    lost.unknown();
    lost.done({ ok: true });
    refused.drop();
    recorder.begin({ c: 5, k: 'b', op: 'get' });
    expect(recorder.records()).toEqual([
      { c: 1, k: 'a', op: 'put', v: 'x', ok: true, t0: 1, t1: 6 },
      { c: 2, k: 'a', op: 'get', ok: true, out: null, t0: 2, t1: 5 },
      { c: 3, k: 'b', op: 'del', ok: false, t0: 3, t1: null },
      { c: 5, k: 'b', op: 'get', ok: false, t0: expect.any(Number), t1: null },
    ]);
  });

  it('a recorder has a bound', () => {
    const recorder = new HistoryRecorder(() => 0, { recordsMax: 1 });
    recorder.begin({ c: 1, k: 'a', op: 'get' });
    expect(() => recorder.begin({ c: 1, k: 'a', op: 'get' })).toThrow('at most 1');
  });

  it('a history survives its text form, key by key', () => {
    const history: HistoryRecord[] = [
      { c: 1, k: 'a', op: 'cas', v: 'x', x: null, ok: false, t0: 1, t1: 2 },
      { c: 'two', k: 'b', op: 'acquire', out: 7, ok: true, t0: 1, t1: null },
      { c: 1, k: 'a', op: 'get', out: ['x', 'y'], ok: true, t0: 3, t1: 4 },
    ];
    expect(fromJsonLines(`${toJsonLines(history)}\n`)).toEqual(history);
    expect([...partitionByKey(history)].map(([key, ops]) => [key, ops.length])).toEqual([
      ['a', 2],
      ['b', 1],
    ]);
  });

  it.each([
    ['{', 'line 2 is not JSON'],
    ['{"c":1,"k":"a","op":"got","ok":true,"t0":1,"t1":2}', 'line 2 is not a history record: op is not one of get'],
    ['{"c":1,"k":"a","op":"get","ok":true,"t0":3,"t1":2}', 't1 is neither null'],
    ['{"c":1,"k":"a","op":"get","ok":true,"out":{},"t0":1,"t1":2}', 'out is not a value'],
  ])('%s is refused with its line', (line, message) => {
    const good = '{"c":1,"k":"a","op":"get","ok":true,"t0":1,"t1":2}';
    expect(() => fromJsonLines(`${good}\n${line}\n`)).toThrow(message);
  });
});
