import { describe, expect, test } from 'vitest';
import { disturbances, dutyProgress } from '../src/logic/node-duty.ts';

const node = { name: 'n3', state: 'up', duty: 'draining', leaders: 2, replicas: 7 };

describe('the progress of a duty', () => {
  test.each([
    { given: {}, isDone: false, short: '2 leaders left' },
    { given: { leaders: 1 }, isDone: false, short: '1 leader left' },
    { given: { leaders: 0 }, isDone: true, short: 'drained' },
    { given: { duty: 'maintenance', leaders: 0 }, isDone: true, short: 'drained' },
    { given: { duty: 'decommissioning', leaders: 0 }, isDone: false, short: '7 replicas left' },
    { given: { duty: 'decommissioning', leaders: 0, replicas: 0 }, isDone: true, short: 'empty' },
  ])('$given is $short', ({ given, isDone, short }) => {
    expect(dutyProgress({ ...node, ...given })).toMatchObject({ isDone, short });
  });

  test.each([{ duty: 'serving' }, { duty: 'removed' }, { state: 'down', leaders: 0 }])(
    'of %o there is none',
    (given) => {
      expect(dutyProgress({ ...node, ...given })).toBeUndefined();
    },
  );
});

test('a stop disturbs clients of a gateway, and the masters that it leads', () => {
  expect(disturbances({ isGateway: false, leadsMasters: false, requestsPerS: 5 })).toEqual([]);
  const both = disturbances({ isGateway: true, leadsMasters: true, requestsPerS: 120 });
  expect(both).toEqual([
    expect.stringContaining('120 requests per second'),
    expect.stringContaining('leads the masters'),
  ]);
  expect(disturbances({ isGateway: true, leadsMasters: false, requestsPerS: undefined })[0]).not.toContain('second');
});
