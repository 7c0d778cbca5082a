import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { joinSignals } from './joined-signal.ts';

const controllers = () => [new AbortController(), new AbortController()] as const;
const listeners = (...all: readonly AbortController[]) =>
  all.map(({ signal }) => getEventListeners(signal, 'abort').length);

describe('signals that are joined', () => {
  it('are aborted with the first of them, for its reason, which the others know nothing of then', () => {
    const [a, b] = controllers();
    const { signal } = joinSignals([a.signal, b.signal]);
    expect([signal.aborted, listeners(a, b)]).toEqual([false, [1, 1]]);
    b.abort(new Error('b'));
    expect([signal.aborted, signal.reason, listeners(a, b)]).toEqual([true, new Error('b'), [0, 0]]);
    a.abort(new Error('a'));
    expect(signal.reason).toEqual(new Error('b'));
  });

  it('are aborted at once if one is', () => {
    const [a, b] = controllers();
    b.abort(new Error('b'));
    const { signal } = joinSignals([a.signal, b.signal, a.signal]);
    expect([signal.aborted, signal.reason, listeners(a, b)]).toEqual([true, new Error('b'), [0, 0]]);
  });

  it('leave nothing behind when they are let go', () => {
    const [a, b] = controllers();
    const { signal, letGo } = joinSignals([a.signal, b.signal]);
    letGo();
    expect(listeners(a, b)).toEqual([0, 0]);
    a.abort();
    expect(signal.aborted).toBe(false);
  });
});
