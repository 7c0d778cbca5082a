import { ServiceError } from '@remora/base';
import type { admin } from '@remora/protocol/remora';
import { describe, expect, test } from 'vitest';
import { awaitOperator } from './await-operator.ts';
import type { Follower } from './follow.ts';

function operator(more: Partial<admin.Operator> = {}): admin.Operator {
  return {
    ...{ id: 9, rangeId: 2, kind: 'admin', status: 'started', reason: 'requested: move', step: 0, ageMs: 10 },
    ...{ steps: ['add a learner on node 4', 'promote node 4 and remove node 1'], endedMs: -1, outcome: '' },
    ...more,
  };
}

/** A master that knows, at each look, one operator, or none. */
function master(...moments: readonly (admin.Operator | undefined)[]) {
  let at = -1;
  return {
    operators: async ({ ended }: { ended: boolean }) => {
      if (!ended) at = Math.min(at + 1, moments.length - 1);
      const known = moments[at];
      const other = operator({ id: 8, endedMs: ended ? 5 : -1 });
      return known !== undefined && known.endedMs >= 0 === ended ? [other, known] : [other];
    },
  };
}

function follower(looksMax = 50): Follower & { readonly said: string[] } {
  const said: string[] = [];
  const stop = new AbortController();
  let looks = 0;
  const pause = async () => {
    if (++looks === looksMax) stop.abort();
  };
  return { said, say: (line) => said.push(line), pause, signal: stop.signal };
}

const DONE = operator({ status: 'success', step: 2, endedMs: 0, outcome: 'done' });

describe('waiting for an operator', () => {
  test('tells its steps and what they wait for, and ends with it', async () => {
    const by = follower();
    const waits = operator({ step: 1, outcome: 'the learner on node 4 has not caught up' });
    const known = master(operator({ status: 'created' }), operator(), operator({ ageMs: 20 }), waits, DONE);
    expect(await awaitOperator(known, operator(), by)).toEqual(DONE);
    expect(by.said).toEqual([
      'operator 9: waiting for the leader of range 2 to report',
      'operator 9: step 1 of 2: add a learner on node 4',
      'operator 9: step 2 of 2: promote node 4 and remove node 1 (the learner on node 4 has not caught up)',
    ]);
  });

  test('fails when it ends otherwise than it should, with the reason', async () => {
    const ended = operator({ status: 'cancelled', endedMs: 0, outcome: 'node 4 is down' });
    await expect(awaitOperator(master(operator(), ended), operator(), follower())).rejects.toMatchObject({
      exit: 'failed',
      message: 'operator 9 ended as cancelled: node 4 is down',
    });
  });

  test('says where to look when a new leader of the masters does not know it', async () => {
    const waiting = awaitOperator(master(operator(), undefined), operator(), follower());
    await expect(waiting).rejects.toMatchObject({
      exit: 'unknown',
      message: expect.stringContaining('To see the range: remora admin ranges show 2'),
    });
  });

  test('does not call it failed when nobody answers any more', async () => {
    const silent = { operators: () => Promise.reject(new ServiceError('UNAVAILABLE', 'no node answers')) };
    await expect(awaitOperator(silent, operator(), follower())).rejects.toMatchObject({
      exit: 'unknown',
      message:
        'operator 9 was started, but its outcome is unknown: no node answers. To see the range: remora admin ranges show 2',
    });
  });

  test('ends at once for one that has ended when it is asked for again', async () => {
    expect(await awaitOperator(master(DONE), DONE, follower())).toEqual(DONE);
  });

  test('leaves it alone when the person stops looking', async () => {
    const by = follower(2);
    expect(await awaitOperator(master(operator()), operator(), by)).toBeUndefined();
    expect(by.said.at(-1)).toBe('operator 9 continues; to follow it: remora admin operators ls');
  });
});
