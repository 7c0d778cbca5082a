import { describe, expect, test } from 'vitest';
import { confOf } from '../../../core/membership.ts';
import type { Entry } from '../../../core/types.ts';
import type { StateMachine } from '../../ports.ts';
import { ApplyQueue } from './apply-queue.ts';

function entries(from: number, to: number, term: number): Entry[] {
  return Array.from({ length: to - from + 1 }, (_, i) => ({
    index: from + i,
    term,
    type: 'normal' as const,
    data: Buffer.alloc(0),
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
    const queue: ApplyQueue = new ApplyQueue(stateMachine, owner, 1);
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
});
