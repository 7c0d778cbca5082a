import { ServiceError } from '@remora/base';
import type { Command } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { put } from '../../test/support/state-bed.ts';
import { lockOf, prepare } from '../../test/support/txn-bed.ts';
import { IntentWaitQueue } from './intent-wait-queue.ts';

class Waiting {
  readonly waits = new IntentWaitQueue();
  readonly log: string[] = [];

  add(name: string, txnId: string, more: { readonly deadlineMs?: number; readonly command?: Command } = {}) {
    return this.waits.add({
      ...{ txnId, deadlineMs: more.deadlineMs ?? 0, ...(more.command && { command: more.command }) },
      retry: () => this.log.push(name),
      fail: (error) => this.log.push(`${name} ${error.code}`),
    });
  }
}

const kv = (key: string): Command => ({ type: 'kv', op: put(key, '1') });
const NOTHING = { keys: [], locks: [] };

describe('those who wait for transactions', () => {
  test('go on in their order when nothing is left of theirs (IW1)', () => {
    const bed = new Waiting();
    const { waits, log } = bed;
    bed.add('a', 't');
    bed.add('b', 'u');
    bed.add('c', 't');
    waits.applied((txnId) => txnId === 'u');
    expect(log).toEqual(['a', 'c']);
    expect([waits.size, [...waits.lookAtAwaited()]]).toEqual([1, ['u']]);
  });

  test('may wait again as they go on, and not be asked twice for one step', () => {
    const waits = new IntentWaitQueue();
    let retries = 0;
    const add = (): void => {
      waits.add({
        ...{ txnId: 't', deadlineMs: 0 },
        retry: () => {
          retries++;
          add();
        },
        fail() {},
      });
    };
    add();
    waits.applied(() => false);
    expect([retries, waits.size]).toEqual([1, 1]);
  });

  test('wait to their deadline, or until leadership is lost (IW3)', () => {
    const bed = new Waiting();
    bed.add('a', 't', { deadlineMs: 500 });
    bed.add('b', 't');
    bed.waits.expire(500);
    expect(bed.log).toEqual([]);
    bed.waits.expire(501);
    bed.waits.abandon(new ServiceError('NOT_LEADER', 'gone'));
    expect(bed.log).toEqual(['a DEADLINE_EXCEEDED', 'b NOT_LEADER']);
  });

  test('are known by the ids of their requests for as long as they wait', () => {
    const { waits } = new Waiting();
    const nothing = { retry() {}, fail() {} };
    waits.add({ ...{ txnId: 't', deadlineMs: 0, command: kv('k'), requestId: 'r' }, ...nothing });
    expect(['r', 's'].map((id) => waits.isWaiting(id))).toEqual([true, false]);
    waits.applied(() => false);
    expect(waits.isWaiting('r')).toBe(false);
  });

  test('are forgotten when they are taken back', () => {
    const bed = new Waiting();
    bed.add('a', 't')();
    bed.waits.applied(() => false);
    expect([bed.log, bed.waits.size]).toEqual([[], 0]);
  });

  test('are in the way of new transactions until they are applied, so that none overtakes them (IW2)', () => {
    const bed = new Waiting();
    const command = kv('a');
    bed.add('a', 't', { command });
    const awaited = (key: string) => bed.waits.isAwaited(prepare('u', 0, [put(key, '2')]), () => NOTHING);
    expect([awaited('a'), awaited('b')]).toEqual([true, false]);
    bed.waits.applied(() => false);
    expect(awaited('a')).toBe(true);
    bed.waits.done(command);
    expect(awaited('a')).toBe(false);
  });

  test('for the end of a lease are in the way of writes with it, and of its keys', () => {
    const bed = new Waiting();
    bed.add('a', 't', {
      command: { type: 'leaseEnd', id: 5n, incarnation: 1, span: { start: Buffer.alloc(0), end: Buffer.alloc(0) } },
    });
    const awaited = (op: ReturnType<typeof put>) =>
      bed.waits.isAwaited(prepare('u', 0, [op]), ({ id }) =>
        id === 5n ? { keys: [Buffer.from('k')], locks: [] } : NOTHING,
      );
    expect([awaited(put('x', '1', { lease: 5n })), awaited(put('k', '1')), awaited(put('x', '1'))]).toEqual([
      true,
      true,
      false,
    ]);
  });

  test.each([
    { name: 'a release', command: { type: 'lock', command: { type: 'forceRelease', lock: lockOf('l') } } },
    { name: 'the end of a session that holds it', command: { type: 'leaseRevoke', id: 5n, incarnation: 0 } },
  ] as const)('$name of a lock is in the way of transactions that compare it, and of no others', ({ command }) => {
    const bed = new Waiting();
    bed.add('a', 't', { command });
    const awaited = (name: string) =>
      bed.waits.isAwaited(
        prepare('u', 0, [put('k', '1')], { compares: [{ lock: lockOf(name), version: 3 }] }),
        ({ id }) => (id === 5n ? { keys: [], locks: [lockOf('l')] } : NOTHING),
      );
    expect([awaited('l'), awaited('m')]).toEqual([true, false]);
  });
});
