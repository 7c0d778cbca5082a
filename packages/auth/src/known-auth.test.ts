import { ManualClock } from '@remora/base/testing';
import type { AuthImage } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { AUTH_TRUST_MS, KnownAuth } from './known-auth.ts';
import { FIRST_AUTH } from './state/auth-state.ts';

const OFF: AuthImage = { ...FIRST_AUTH, revision: 1 };
const ON: AuthImage = { ...FIRST_AUTH, enabled: true, revision: 5 };

function bed() {
  const clock = new ManualClock();
  let hurried = 0;
  const known = new KnownAuth({ clock, hurry: () => void hurried++ });
  return { clock, known, hurried: () => hurried };
}

const codeOf = (known: KnownAuth): string | undefined => {
  try {
    known.authority;
    return undefined;
  } catch (error) {
    return (error as { readonly code?: string }).code;
  }
};

describe('what a node knows of users and roles', () => {
  test('only becomes newer (KA1)', () => {
    const { known } = bed();
    known.learn(ON, 0);
    known.learn({ ...OFF, revision: 4 }, 0);
    known.learn({ ...OFF, revision: 5 }, 0);
    expect([known.revision, known.isOff]).toEqual([5, false]);
    known.learn({ ...OFF, revision: 6 }, 0);
    expect([known.revision, known.isOff]).toEqual([6, true]);
  });

  test('is trusted for a time from when the masters were asked, not from when they answered (KA2)', () => {
    const { clock, known } = bed();
    clock.advance(10_000);
    known.learn(ON, 2_000);
    clock.advance(2_000 + AUTH_TRUST_MS - 10_001);
    expect(codeOf(known)).toBeUndefined();
    clock.advance(1);
    expect(codeOf(known)).toBe('UNAVAILABLE');
    known.learn(undefined, clock.monotonicMs());
    expect(codeOf(known)).toBeUndefined();
  });

  test('is nothing before the first answer of the masters (KA3)', () => {
    const { known } = bed();
    expect([codeOf(known), known.isOff, known.revision]).toEqual(['UNAVAILABLE', false, 0]);
    known.learn(undefined, 0);
    expect(codeOf(known)).toBe('UNAVAILABLE');
  });

  test('is kept for later lives, which decide by it only what is needed without masters (KA6)', () => {
    const clock = new ManualClock();
    const kept: AuthImage[] = [];
    const first = new KnownAuth({ clock, hurry() {}, remember: (image) => void kept.push(image) });
    first.learn(OFF, 0);
    first.learn(undefined, 1);
    first.learn(ON, 2);
    expect(kept).toEqual([OFF, ON]);
    for (const remembered of [OFF, ON]) {
      const later = new KnownAuth({ clock, hurry() {}, remembered, remember: (image) => void kept.push(image) });
      expect([codeOf(later), later.isOff, later.revision]).toEqual(['UNAVAILABLE', false, 0]);
      later.learn(undefined, clock.monotonicMs());
      expect(codeOf(later)).toBe('UNAVAILABLE');
      expect(later.lastKnown?.enabled).toBe(remembered.enabled);
      later.learn(remembered, clock.monotonicMs());
      expect([codeOf(later), later.isOff]).toEqual([undefined, remembered === OFF]);
    }
    expect(kept).toEqual([OFF, ON]); // what is kept is not written again
  });

  test('decides what is needed without masters, however old it is (KA5)', () => {
    const { clock, known } = bed();
    expect(known.lastKnown).toBeUndefined();
    known.learn(ON, 0);
    clock.advance(10 * AUTH_TRUST_MS);
    const rescue = [{ type: 'root', what: 'administer the cluster', withoutMasters: true }] as const;
    expect(() => known.lastKnown?.check(undefined, rescue)).toThrow();
  });

  test('goes on without masters while authentication is off (KA4)', () => {
    const { clock, known } = bed();
    known.learn(OFF, 0);
    clock.advance(10 * AUTH_TRUST_MS);
    expect(codeOf(known)).toBeUndefined();
  });

  test('calls back when a revision is known, at once if it is, and after the time in any case', () => {
    const { clock, known, hurried } = bed();
    const called: string[] = [];
    known.whenKnown(2, 1_000, () => called.push('two'));
    known.whenKnown(5, 1_000, () => called.push('five'));
    known.whenKnown(5, 500, () => called.push('late'));
    known.whenKnown(5, 1_000, () => called.push('cancelled'))();
    expect(hurried()).toBe(4);
    known.learn({ ...ON, revision: 4 }, 0);
    expect(called).toEqual(['two']);
    clock.advance(600);
    expect(called).toEqual(['two', 'late']);
    known.learn(ON, 0);
    known.whenKnown(5, 1_000, () => called.push('at once'));
    expect(called).toEqual(['two', 'late', 'five', 'at once']);
    clock.advance(5_000);
    expect(called).toHaveLength(4);
  });

  test('tells listeners of every other revision, until they leave', () => {
    const { known } = bed();
    const heard: number[] = [];
    const leave = known.onChange(() => heard.push(known.revision));
    known.learn(ON, 0);
    known.learn(ON, 0);
    leave();
    known.learn({ ...ON, revision: 7 }, 0);
    expect(heard).toEqual([5]);
  });
});
