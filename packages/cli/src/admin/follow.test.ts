import { ServiceError } from '@remora/base';
import { describe, expect, test } from 'vitest';
import { type Follower, follow, type Progress } from './follow.ts';

/** Somebody who looks on, and stops after so many looks. */
function follower(looksMax = 100): Follower & { readonly said: string[] } {
  const said: string[] = [];
  const stop = new AbortController();
  let looks = 0;
  const pause = async () => {
    if (++looks === looksMax) stop.abort();
  };
  return { said, say: (line) => said.push(line), pause, signal: stop.signal };
}

function looks<T>(...answers: readonly (Progress<T> | Error)[]): () => Promise<Progress<T>> {
  const left = [...answers];
  return async () => {
    const answer = left.length > 1 ? left.shift() : left[0];
    if (answer === undefined || answer instanceof Error) throw answer;
    return answer;
  };
}

const GONE = new ServiceError('UNAVAILABLE', 'gone');

describe('following', () => {
  test('ends with what came of it, and says each thing once', async () => {
    const by = follower();
    expect(await follow(looks({ line: 'a' }, { line: 'a' }, { line: 'b' }, { over: 7 }), by)).toBe(7);
    expect(by.said).toEqual(['a', 'b']);
  });

  test('bears that the cluster does not answer for a while, again and again', async () => {
    const by = follower();
    const nine = Array.from({ length: 9 }, () => GONE);
    expect(await follow(looks({ line: 'a' }, ...nine, { line: 'b' }, ...nine, { over: 7 }), by)).toBe(7);
    expect(by.said).toEqual(['a', 'no answer, retrying: gone', 'b', 'no answer, retrying: gone']);
  });

  test('does not go on for ever without an answer', async () => {
    await expect(follow(looks(GONE), follower())).rejects.toBe(GONE);
  });

  test('ends when the person stops looking, and at once at what is no answer of the cluster', async () => {
    expect(await follow(looks({ line: 'a' }), follower(3))).toBeUndefined();
    const broken = new TypeError('a bug');
    await expect(follow(looks(broken), follower())).rejects.toBe(broken);
  });
});
