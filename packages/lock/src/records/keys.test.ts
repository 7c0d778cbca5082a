import { binaryString, compareBytes, equalBytes, spanContains, utf8 } from '@remora/base';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MemoryView } from '../../test/memory-view.ts';
import {
  applyLockCommand,
  LOCK_SPACE,
  type LockId,
  type LockQueryResult,
  lockNames,
  lockOfKey,
  lockOfName,
  lockPrefix,
  lockSpan,
  lockStart,
  nameAt,
  namespaceSpan,
  queryLocks,
} from '../index.ts';

const lockId: fc.Arbitrary<LockId> = fc.record({
  namespace: fc.constantFrom('a', 'ab', 'ä'),
  name: fc.array(fc.constantFrom(0, 1, 2, 254, 255), { minLength: 1, maxLength: 6 }).map((a) => Uint8Array.from(a)),
});

describe('keys', () => {
  it('every lock has a span of its own, in the order of names, and its keys name it', () => {
    fc.assert(
      fc.property(lockId, lockId, (a, b) => {
        const [spanA, spanB] = [lockSpan(a), lockSpan(b)];
        expect(spanA.start[0]).toBe(LOCK_SPACE);
        expect(lockOfKey(spanA.start)).toEqual({ namespace: a.namespace, name: Buffer.from(a.name) });
        const inner = Buffer.concat([spanA.start, Buffer.from([2, 0, 1, 255])]);
        expect(spanContains(spanA, inner)).toBe(true);
        expect(lockStart(inner)).toEqual(spanA.start);
        for (const lock of [a, b]) {
          const prefix = binaryString(lockPrefix(lock));
          expect(lockNames(lock)).toEqual({ lock: prefix, head: `${prefix}\0` }); // K4
        }
        expect(lockOfName(lockNames(a).lock)).toEqual(lockOfKey(spanA.start));
        if (a.namespace !== b.namespace) return;
        const order = Math.sign(compareBytes(a.name, b.name));
        expect(Math.sign(compareBytes(spanA.start, spanB.start))).toBe(order);
        if (order < 0) expect(compareBytes(spanA.end, spanB.start)).toBeLessThanOrEqual(0);
      }),
    );
  });

  it('a place among the keys is named by the first name at or behind it', () => {
    fc.assert(
      fc.property(lockId, lockId, ({ namespace, name }, { name: other }) => {
        const at = nameAt(namespace, lockSpan({ namespace, name }).start);
        expect(at).toEqual(Buffer.from(name));
        const { start, end } = namespaceSpan(namespace, name);
        expect(nameAt(namespace, start)).toEqual(Buffer.from(name));
        // What a prefix ends with names what comes first behind all that begin so.
        const behind = nameAt(namespace, end);
        const begins = equalBytes(other.subarray(0, name.length), name);
        const isBefore = compareBytes(other, name) >= 0 && (behind.length === 0 || compareBytes(other, behind) < 0);
        expect(isBefore).toBe(begins);
      }),
    );
    const { start, end } = namespaceSpan('ab', utf8(''));
    expect([nameAt('ab', start).length, nameAt('ab', end).length]).toEqual([0, 0]);
  });

  it('a namespace span holds exactly the locks whose names begin with the prefix', () => {
    fc.assert(
      fc.property(lockId, lockId, (a, b) => {
        const span = namespaceSpan(a.namespace, a.name);
        const begins = b.namespace === a.namespace && equalBytes(b.name.subarray(0, a.name.length), a.name);
        expect(spanContains(span, lockSpan(b).start)).toBe(begins);
      }),
    );
  });

  it('a key of another space, or one that is cut short, belongs to no lock', () => {
    expect(lockStart(Buffer.from([3, 1, 97, 98, 0, 1]))).toBeUndefined();
    expect(lockStart(lockSpan({ namespace: 'a', name: utf8('b') }).start.subarray(0, -1))).toBeUndefined();
  });
});

describe('queries', () => {
  const session = { lease: 1n, incarnation: 1 };

  function held(names: readonly string[]): MemoryView {
    const view = new MemoryView();
    view.begin(session);
    const base = { wait: true, waitUntilMs: 0, deadlineMs: 9_000, depthMax: 1, data: utf8('') };
    for (const name of names) {
      view.revision += 1;
      const lock = { namespace: 'a', name: utf8(name) };
      applyLockCommand(view, { type: 'acquire', lock, owner: { session, token: 't' }, ...base });
      for (let i = 0; i < 50; i++) {
        applyLockCommand(view, { type: 'acquire', lock, owner: { session, token: `w${i}` }, ...base });
      }
    }
    return view;
  }

  function namesOf(result: LockQueryResult): readonly string[] {
    return result.type === 'list' ? result.locks.map(({ lock }) => Buffer.from(lock.name).toString()) : [];
  }

  it('a list pages through the locks of a prefix, and reads no more than it answers', () => {
    const view = held(['a1', 'a2', 'a3', 'b1', 'a2/x']);
    applyLockCommand(view, {
      type: 'cancel',
      lock: { namespace: 'a', name: utf8('a0') },
      owner: { session, token: 't' },
      deadlineMs: 9_000,
    });
    const query = { type: 'list' as const, namespace: 'a', prefix: utf8('a'), limit: 2 };
    view.resetCalls();
    const first = queryLocks(view, { ...query, after: utf8('') });
    expect(namesOf(first)).toEqual(['a1', 'a2']);
    expect(first).toMatchObject({ more: true, locks: [{ waiterCount: 50 }, { waiterCount: 50 }] });
    expect(view.calls.rowsScanned).toBeLessThan(30);
    const second = queryLocks(view, { ...query, after: utf8('a2') });
    expect(namesOf(second)).toEqual(['a2/x', 'a3']);
    expect(second).toMatchObject({ more: false });
    expect(namesOf(queryLocks(view, { ...query, prefix: utf8(''), after: utf8('a3') }))).toEqual(['b1']);
  });

  it('show numbers the waiters and leaves out those whose wait is over', () => {
    const view = held(['l']);
    const lock = { namespace: 'a', name: utf8('l') };
    const shown = queryLocks(view, { type: 'show', lock });
    expect(shown).toMatchObject({ type: 'show', state: { lock, kind: 'exclusive', waiterCount: 50 } });
    if (shown.type === 'show') {
      expect(shown.state?.waiters.map((w) => w.position)).toEqual(Array.from({ length: 50 }, (_, i) => i + 1));
    }
    expect(queryLocks(view, { type: 'show', lock: { ...lock, name: utf8('m') } })).toEqual({
      type: 'show',
      state: undefined,
    });
  });

  it('a check says of each version whether it is the current grant', () => {
    const view = held(['l']);
    const lock = { namespace: 'a', name: utf8('l') };
    const checks = [2, 1, 3].map((version) => ({ lock, version }));
    expect(queryLocks(view, { type: 'check', checks })).toEqual({ type: 'check', current: [true, false, false] });
  });
});
