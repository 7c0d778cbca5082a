import type { ChildProcess } from 'node:child_process';
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

test('a command that may not be sent signals keeps what it runs under until it has ended', async () => {
  const told: string[] = [];
  let child: ChildProcess | undefined;
  let endedBefore: boolean | undefined;
  const held: Holding = {
    signal: new AbortController().signal,
    [Symbol.asyncDispose]: async () => {
      endedBefore = child?.exitCode !== null;
    },
  };
  const code = await runChild(async () => held, {
    ...{ what: 'l', lost: 'the lock was lost', argv: [process.execPath, '-e', '0'], killAfterMs: undefined },
    shell: { err: (text: string) => told.push(text) } as unknown as Shell,
    env: () => ({}),
    onStart: (started) => {
      child = started;
      // What Node makes of EPERM; of SIGTERM, and of SIGKILL after it.
      for (const _ of ['SIGTERM', 'SIGKILL']) setImmediate(() => started.emit('error', new Error('kill EPERM')));
    },
  });
  expect({ code, endedBefore, told: told.length }).toEqual({ code: 0, endedBefore: true, told: 2 });
});

test('a command is not started under what was given although the wait for it was given up', async () => {
  let started = false;
  let givenBack = false;
  const held: Holding = {
    signal: new AbortController().signal,
    [Symbol.asyncDispose]: async () => {
      givenBack = true;
    },
  };
  const acquire = async (): Promise<Holding> => {
    process.emit('SIGTERM', 'SIGTERM');
    return held;
  };
  const code = await runChild(acquire, {
    ...{ what: 'l', lost: 'the lock was lost', argv: [process.execPath, '-e', '0'], killAfterMs: undefined },
    shell: { err: () => {} } as unknown as Shell,
    env: () => ({}),
    onStart: () => {
      started = true;
    },
  });
  expect({ code, started, givenBack }).toEqual({ code: 128 + 15, started: false, givenBack: true });
});
