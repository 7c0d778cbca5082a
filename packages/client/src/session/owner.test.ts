import { utf8 } from '@remora/base';
import { describe, expect, test } from 'vitest';
import { Owners, type OwnerTurns } from './owner.ts';

const A = { namespace: 'n', name: utf8('a') };
const B = { namespace: 'n', name: utf8('b') };
const C = { namespace: 'n', name: utf8('c') };

/** Takes its turn and leaves it again. */
function pass(owner: OwnerTurns): void {
  owner.enter(() => true);
  owner.leave();
}

function take(owner: OwnerTurns, version: number): OwnerTurns {
  owner.granted(version, 'exclusive');
  return owner;
}

describe('the owners of a session', () => {
  test('are told apart by their token, and by the lock where several have one token', () => {
    const owners = new Owners();
    const [a, b, c] = [owners.of(A, 't'), owners.of(B, 't'), owners.of(C, 't')];
    expect(new Set([a, b, c, owners.of(A, 'u'), owners.of({ ...A, namespace: 'm' }, 't')]).size).toBe(5);
    expect([owners.of(A, 't'), owners.of(B, 't'), owners.of(C, 't')]).toEqual([a, b, c]);
    expect(owners.of({ namespace: 'n', name: utf8('b') }, 't')).toBe(b);
  });

  test('are kept while they hold something, whichever of one token goes first', () => {
    for (const goesFirst of [0, 1, 2]) {
      const owners = new Owners();
      const held = [A, B, C].map((lock, at) => take(owners.of(lock, 't'), at + 1));
      const gone = held[goesFirst];
      if (gone === undefined) throw new Error('no such owner');
      gone.levels = 0;
      pass(gone);
      const now = [A, B, C].map((lock) => owners.of(lock, 't'));
      expect(now.map((owner, at) => owner === held[at])).toEqual([0, 1, 2].map((at) => at !== goesFirst));
      // Those that took the places of one who went are found again like the others.
      expect([A, B, C].map((lock, at) => owners.of(lock, 't') === now[at])).toEqual([true, true, true]);
    }
  });

  test('are not forgotten because an earlier one of the same token and lock has nothing left to do', () => {
    for (const lock of [A, B]) {
      const owners = new Owners();
      take(owners.of(A, 't'), 1);
      const earlier = owners.of(lock, 't');
      earlier.levels = 0;
      pass(earlier);
      const later = take(owners.of(lock, 't'), 2);
      pass(earlier);
      expect(owners.of(lock, 't')).toBe(later);
    }
  });
});
