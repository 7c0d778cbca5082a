import { expect, test } from 'vitest';
import { exitCode } from '../exit-codes.ts';
import type { Shell } from '../shell.ts';
import { type Holding, runChild } from './run-child.ts';

/** Lost, which is found out by the next look at it once it has been looked at so often. */
function lostAfter(looks: number): Holding {
  const lost = new AbortController();
  let looked = 0;
  return {
    get signal() {
      if (looked++ >= looks) lost.abort(new Error('lost'));
      return lost.signal;
    },
    [Symbol.asyncDispose]: async () => {},
  };
}

async function codeUnder(held: Holding): Promise<number> {
  return runChild(async () => held, {
    ...{ what: 'l', lost: 'the lock was lost', argv: [process.execPath, '-e', '0'], killAfterMs: undefined },
    shell: { err: () => {} } as unknown as Shell,
    env: () => ({}),
  });
}

test('a command that ended while this process was frozen, and its lock was lost, did not end well', async () => {
  expect(await codeUnder(lostAfter(1))).toBe(exitCode('lockLost'));
});

test('a command that ended under what was held gives its own code', async () => {
  expect(await codeUnder(lostAfter(Number.POSITIVE_INFINITY))).toBe(0);
});
