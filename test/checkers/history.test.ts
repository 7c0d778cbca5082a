import { describe, expect, it } from 'vitest';
import { HistoryRecorder } from './index.ts';

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
});
