import type { ServiceError } from '@remora/base';
import type { RevisionBlock } from '@remora/protocol';
import { staleEpoch } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { DESCRIPTOR } from '../../../test/support/state-bed.ts';
import { RevisionAllocationQueue } from './revision-allocation-queue.ts';

/** A range whose draws are sent and answered when the test says so. */
class QueueBed {
  role: 'leader' | 'follower' = 'leader';
  term = 1;
  epochVersion = 1;
  nowMs = 100;
  wanted = 0;
  readonly proposed: [string, RevisionBlock][] = [];
  readonly refused: [string, string | undefined][] = [];
  readonly queue = new RevisionAllocationQueue({
    rangeId: 2,
    drawer: {
      want: () => {
        this.wanted++;
      },
    },
    revision: () => 40,
    epochVersion: () => this.epochVersion,
    rangeTimeMs: () => this.nowMs,
    group: () => ({ role: this.role, term: this.term }),
    staleEpoch: () => staleEpoch([DESCRIPTOR]),
    propose: (queued, block) => this.proposed.push([queued.map((q) => q.item.requestId).join(), block]),
  });

  add(requestId: string, deadlineMs = 0): void {
    const item = { requestId, deadlineMs, command: { type: 'noop' as const } };
    const complete = (error: ServiceError | undefined): void => void this.refused.push([requestId, error?.code]);
    this.queue.add([{ item, bytes: 10, complete }]);
  }
}

describe('commands that wait for revisions', () => {
  test('get a block only if they were there when it was requested (B1), and what is left goes to nobody (B3)', () => {
    const bed = new QueueBed();
    bed.add('a');
    expect(bed.queue.sending()).toEqual({ floor: 40, count: 1 });
    bed.add('late');
    bed.queue.answered({ first: 50, count: 8 });
    expect(bed.proposed).toEqual([['a', { first: 50, count: 8 }]]);
    expect(bed.queue.length).toBe(1);
    expect(bed.queue.sending()).toEqual({ floor: 40, count: 1 });
    bed.queue.answered({ first: 70, count: 1 });
    expect(bed.proposed[1]).toEqual(['late', { first: 70, count: 1 }]);
    expect(bed.queue.sending()).toBeUndefined();
  });

  test('are not proposed with a block that was requested in another term (B2)', () => {
    const bed = new QueueBed();
    bed.add('a');
    bed.queue.sending();
    bed.term = 3;
    bed.queue.answered({ first: 50, count: 1 });
    expect(bed.proposed).toEqual([]);
    expect(bed.refused).toEqual([['a', 'NOT_LEADER']]);
  });

  test('of the next term do not get the block that one of an earlier term was promised (B2)', () => {
    const bed = new QueueBed();
    bed.add('a');
    bed.queue.sending();
    bed.queue.abandon(staleEpoch([DESCRIPTOR]));
    bed.term = 3;
    bed.add('b');
    bed.queue.answered({ first: 50, count: 1 });
    expect(bed.proposed).toEqual([]);
    expect(bed.queue.length).toBe(1);
  });

  test('are asked for again, in their order, when a request failed', () => {
    const bed = new QueueBed();
    bed.add('a');
    bed.queue.sending();
    bed.add('b');
    bed.queue.failed();
    expect(bed.queue.sending()).toEqual({ floor: 40, count: 2 });
    bed.queue.answered({ first: 50, count: 2 });
    expect(bed.proposed).toEqual([['a,b', { first: 50, count: 2 }]]);
  });

  const passed: readonly { name: string; pass: (bed: QueueBed) => void }[] = [
    { name: 'before the request', pass: (bed) => bed.queue.sending() },
    {
      name: 'under the request',
      pass: (bed) => {
        bed.epochVersion--;
        bed.queue.sending();
        bed.epochVersion++;
        bed.queue.answered({ first: 50, count: 1 });
      },
    },
    { name: 'as others come', pass: (bed) => bed.add('b') },
  ];
  test.each(passed)('are refused when the epoch that they were checked under passes $name (B4)', ({ pass }) => {
    const bed = new QueueBed();
    bed.add('a');
    bed.epochVersion++;
    pass(bed);
    expect(bed.refused).toEqual([['a', 'STALE_EPOCH']]);
    expect(bed.proposed).toEqual([]);
  });

  test('are refused once their deadline has passed, and no revision is drawn for them (B4)', () => {
    const bed = new QueueBed();
    bed.add('a', 99);
    bed.add('b', 101);
    expect(bed.queue.sending()).toEqual({ floor: 40, count: 1 });
    expect(bed.refused).toEqual([['a', 'DEADLINE_EXCEEDED']]);
    expect(bed.queue.bytes).toBe(10);
  });

  test('are settled when the request that covers them ends, however it ends', () => {
    for (const end of ['answered', 'failed', 'abandon'] as const) {
      const bed = new QueueBed();
      const settled: string[] = [];
      bed.add('a');
      bed.queue.whenSettled(() => settled.push('nothing requested'));
      bed.queue.sending();
      bed.queue.whenSettled(() => settled.push(`proposed ${bed.proposed.length}`));
      expect(settled).toEqual(['nothing requested']);
      if (end === 'answered') bed.queue.answered({ first: 50, count: 1 });
      else if (end === 'failed') bed.queue.failed();
      else bed.queue.abandon(staleEpoch([DESCRIPTOR]));
      expect(settled[1]).toBe(end === 'answered' ? 'proposed 1' : 'proposed 0');
    }
  });
});
