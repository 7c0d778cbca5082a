import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { confOf } from '../../../core/membership/membership.ts';
import type { Entry } from '../../../core/types.ts';
import type { StateMachine } from '../../ports.ts';
import { ApplyQueue } from './apply-queue.ts';

const ONE = { entries: 1, bytes: 1_024 };

function entries(from: number, to: number, term: number, bytes = 0): Entry[] {
  return Array.from({ length: to - from + 1 }, (_, i) => ({
    index: from + i,
    term,
    type: 'normal' as const,
    data: Buffer.alloc(bytes),
  }));
}

describe('the apply queue', () => {
  test('a snapshot is taken between two calls, although a turn begins the next one at once', async () => {
    const order: string[] = [];
    let finish: (() => void) | undefined;
    const stateMachine: StateMachine = {
      apply: (slice) => {
        order.push(`apply ${slice[0]?.index}`);
        return new Promise<void>((resolve) => {
          finish = () => {
            order.push('applied');
            resolve();
          };
        });
      },
      roleChanged: () => {},
      snapshot: () => {
        throw new Error('not asked for');
      },
      install: () => {
        throw new Error('not asked for');
      },
    };
    const owner = { confAfter: () => confOf([1]), applied: () => {}, resumed: () => queue.step(), failed: () => {} };
    const queue: ApplyQueue = new ApplyQueue(stateMachine, owner, ONE);
    queue.push(entries(1, 3, 1));
    const first = queue.whenIdle(() => order.push('snapshot'));
    queue.step(); // the same turn goes on to apply
    await first;
    const second = queue.whenIdle(() => order.push('snapshot'));
    owner.resumed = () => false; // the next turn comes later
    finish?.();
    await second;
    queue.step();
    expect(order).toEqual(['snapshot', 'apply 1', 'applied', 'snapshot', 'apply 2']);
  });

  // The process could not even end: nothing but the wait would have had its turn.
  test('a call that fails is the last one, and nobody waits for it any more', async () => {
    let asked = 0;
    /** Settled for whoever waits, again and again; it says when that has no end. */
    const settled = {
      // biome-ignore lint/suspicious/noThenProperty: stands for a promise
      then(resolve: () => void, reject: (error: Error) => void): void {
        if (++asked > 100) reject(new Error('waits for ever'));
        else resolve();
      },
    };
    const failing = {
      // biome-ignore lint/suspicious/noThenProperty: stands for a promise
      then(_: unknown, reject: (error: Error) => void): object {
        queueMicrotask(() => reject(new Error('the disk failed')));
        return settled;
      },
    };
    const calls: number[] = [];
    const stateMachine = {
      apply: (slice: readonly Entry[]) => {
        calls.push(slice[0]?.index ?? 0);
        return failing as unknown as Promise<void>;
      },
    } as unknown as StateMachine;
    const failures: string[] = [];
    const failed = (error: unknown): void => void failures.push(String(error));
    const owner = { confAfter: () => confOf([1]), applied: () => {}, resumed: () => {}, failed };
    const queue = new ApplyQueue(stateMachine, owner, ONE);
    queue.push(entries(1, 3, 1));
    queue.step();
    const picture = queue.whenIdle(() => 'a picture');
    await expect(picture).rejects.toThrow('A4: the state machine has failed');
    queue.step();
    await queue.close();
    expect(calls).toEqual([1]);
    expect(failures).toEqual(['Error: the disk failed']);
  });

  test.each([
    { name: 'at most so many entries', limits: { entries: 3, bytes: 1_024 }, expected: [3, 3, 1, 2] },
    {
      name: 'no further entry once it has enough bytes',
      limits: { entries: 9, bytes: 101 },
      expected: [2, 2, 2, 1, 2],
    },
    {
      name: 'one entry, however large it is',
      limits: { entries: 9, bytes: 10 },
      expected: [1, 1, 1, 1, 1, 1, 1, 1, 1],
    },
  ])('a call takes $name, and a change of the membership alone (A5, A3)', ({ limits, expected }) => {
    const calls: (readonly Entry[])[] = [];
    const stateMachine = { apply: (slice: readonly Entry[]) => void calls.push(slice) } as unknown as StateMachine;
    const owner = { confAfter: () => confOf([1]), applied: () => {}, resumed: () => {}, failed: () => {} };
    const queue = new ApplyQueue(stateMachine, owner, limits);
    const all = entries(1, 9, 1, 100).map((entry) => (entry.index === 7 ? { ...entry, type: 'conf' as const } : entry));
    queue.push(all);
    while (queue.step());
    expect(calls.flat()).toEqual(all);
    expect(calls.map((slice) => slice.length)).toEqual(expected);
  });

  // Of a replica that applies more slowly than is committed, all entries stayed in memory until it was done once.
  test('what is applied is let go, although there is always more', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const stateMachine = { apply: () => undefined } as unknown as StateMachine;
    const owner = { confAfter: () => confOf([1]), applied: () => {}, resumed: () => {}, failed: () => {} };
    const queue = new ApplyQueue(stateMachine, owner, ONE);
    const pushed: WeakRef<Entry>[] = [];
    const push = (from: number, to: number): void => {
      const more = entries(from, to, 1);
      for (const entry of more) pushed.push(new WeakRef(entry));
      queue.push(more);
    };
    push(1, 10);
    for (let index = 11; index <= 1_000; index++) {
      push(index, index);
      queue.step();
    }
    await new Promise((resolve) => setImmediate(resolve));
    collect();
    expect(queue.step()).toBe(true);
    expect(pushed.filter((each) => each.deref() !== undefined).length).toBeLessThan(50);
  });
});
