import { type ServiceError, utf8 } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { Command } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { del, put } from '../../../test/support/state-bed.ts';
import { SplitBackpressure } from './split-backpressure.ts';

const DELETE = { type: 'delete', key: utf8('a'), prevKv: false } as const;
const PUT: Command = { type: 'kv', op: put('a', 'b') };

function bed(pressure: number) {
  const clock = new ManualClock();
  const now = { pressure };
  const backpressure = new SplitBackpressure({ clock, pressure: () => now.pressure });
  const went: string[] = [];
  const refused: ServiceError[] = [];
  const write = (name: string, command = PUT): void => {
    const go = (): void => void went.push(name);
    if (backpressure.slows(command)) backpressure.hold({ go, refuse: (error) => refused.push(error) });
    else go();
  };
  return { clock, now, backpressure, went, refused, write };
}

describe('writers of a range that is large', () => {
  test('wait the longer the nearer it is to its maximum, and are refused there, to come again', () => {
    const { clock, now, backpressure, went, refused, write } = bed(0);
    write('small');
    now.pressure = 0.9;
    write('late');
    now.pressure = 0.1;
    write('soon');
    expect([went, backpressure.waiting]).toEqual([['small'], 2]);
    clock.advance(10);
    expect(went).toEqual(['small', 'soon']);
    clock.advance(80);
    expect([went, backpressure.waiting]).toEqual([['small', 'soon', 'late'], 0]);
    now.pressure = 1;
    write('refused');
    expect(refused).toMatchObject([{ code: 'RESOURCE_EXHAUSTED', retry: 'later', details: { retryAfterMs: 200 } }]);
    expect(went).toHaveLength(3);
  });

  test('are refused when too many wait', () => {
    const { backpressure, refused, write } = bed(0.5);
    for (let i = 0; i < 10_001; i++) write(String(i));
    expect([backpressure.waiting, refused.length]).toEqual([10_000, 1]);
  });

  const compare = [] as const;
  test.each<{ name: string; command: Command; held: boolean }>([
    { name: 'a delete', command: { type: 'kv', op: DELETE }, held: false },
    {
      name: 'a transaction that only deletes',
      command: { type: 'txn', txn: { compare, success: [del('a')], failure: [] } },
      held: false,
    },
    {
      name: 'one that may put',
      command: { type: 'txn', txn: { compare, success: [], failure: [put('a', 'b')] } },
      held: true,
    },
    {
      name: 'one that puts deep inside',
      command: {
        type: 'txn',
        txn: {
          compare,
          success: [{ type: 'txn', txn: { compare, success: [put('a', 'b')], failure: [] } }],
          failure: [],
        },
      },
      held: true,
    },
    { name: 'the end of a lease', command: { type: 'leaseRevoke', id: 1n, incarnation: 2 }, held: false },
    { name: 'a barrier', command: { type: 'noop' }, held: false },
  ])('$name: held back $held', ({ command, held }) => {
    const { refused, write } = bed(1);
    write('it', command);
    expect(refused.length > 0).toBe(held);
  });
});
