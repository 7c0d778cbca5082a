import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeClock, nodeRandom, ServiceError, systemProcessTable } from '@remora/base';
import { describe, expect, test } from 'vitest';
import { exitCode } from '../exit-codes.ts';
import type { RunningCommand } from '../run/running-command.ts';
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
    release: async () => {},
  };
}

/** The exit code, and what was told to people. */
async function runUnder(
  held: Holding,
  argv = [process.execPath, '-e', '0'],
  what = 'l',
): Promise<{ code: number; told: string }> {
  const told: string[] = [];
  const code = await runChild(async () => held, {
    ...{ what, lost: 'the lock was lost', argv, killAfterMs: undefined, ttlMs: undefined },
    shell: { err: (text: string) => told.push(text) } as unknown as Shell,
    env: () => ({}),
  });
  return { code, told: told.join('\n') };
}

test('a command that ended while this process was frozen, and its lock was lost, did not end well', async () => {
  const { code, told } = await runUnder(lostAfter(2));
  expect(code).toBe(exitCode('lockLost'));
  expect(told).toMatch(/^remora: the lock was lost \(lost\)/);
});

/** Those that end a process which does nothing about them. */
const DEADLY = Object.keys(constants.signals).filter(
  (name) => !/^SIG(CHLD|CONT|STOP|TSTP|TTIN|TTOU|URG|WINCH|INFO|UNUSED)$/.test(name),
);

test.each(DEADLY)('the exit code of a command that %s ended is 128 and its number', async (name) => {
  const number = constants.signals[name as NodeJS.Signals];
  const argv = ['sh', '-c', `ulimit -c 0; kill -${number} $$`];
  expect((await runUnder(lostAfter(Number.POSITIVE_INFINITY), argv)).code).toBe(128 + number);
});

test('a command does not begin under what is lost by the time it is given (K1)', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'remora-run-'));
  const begun = join(directory, 'begun');
  try {
    const { code, told } = await runUnder(lostAfter(0), ['sh', '-c', `trap "" TERM; : > ${begun}`]);
    expect({ code, begun: existsSync(begun) }).toEqual({ code: exitCode('lockLost'), begun: false });
    expect(told).toBe('remora: the lock was lost (lost) before the command started');
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test('a command is not begun, and not taken for one that has failed, where nobody answered for as long as a session lasts', async () => {
  const acquire = () => Promise.reject(new ServiceError('SESSION_EXPIRED', 'the session is lost'));
  const run = runChild<Holding>(acquire, {
    ...{
      what: 'l',
      lost: 'the lock was lost',
      argv: ['true'],
      killAfterMs: undefined,
      ttlMs: undefined,
      env: () => ({}),
    },
    shell: {} as Shell,
  });
  await expect(run).rejects.toMatchObject({
    exit: 'unavailable',
    message: 'the session is lost (SESSION_EXPIRED); the command was not started',
  });
});

test('a command that ended under what was held gives its own code', async () => {
  expect(await runUnder(lostAfter(Number.POSITIVE_INFINITY))).toEqual({ code: 0, told: '' });
});

test('the name of a lock reaches a terminal without its escapes', async () => {
  const held: Holding = {
    signal: new AbortController().signal,
    release: () => Promise.reject(new ServiceError('UNKNOWN_OUTCOME', 'nobody answered')),
  };
  const { told } = await runUnder(held, ['true'], 'a\u001b[2J');
  expect(told).toMatch(/^remora: a\\x1b\[2J could not be released/);
});

describe('what is told when a command has ended and gives back what it ran under (K4)', () => {
  const gone = new ServiceError('LOCK_NOT_HELD', 'it was taken away');
  const expired = new ServiceError('SESSION_EXPIRED', 'the session has ended');
  const unanswered = new ServiceError('UNKNOWN_OUTCOME', 'nobody answered');
  const givenUp = new ServiceError('CANCELED', 'nobody waits any more');
  test.each<{ name: string; release?: ServiceError; part?: ServiceError; code: number; says: string }>([
    { name: 'it had been taken away', release: gone, code: 76, says: 'the lock was lost (it was taken away)' },
    { name: 'its session had ended', release: expired, code: 76, says: 'the lock was lost (the session has ended)' },
    { name: 'nobody answered', release: unanswered, code: 0, says: 'l could not be released' },
    { name: 'it was lost before the others ended', part: expired, code: 76, says: 'the lock was lost' },
    { name: 'the others were not waited for', part: givenUp, code: 0, says: 'l did not end together' },
  ])('$name: exit code $code', async ({ release, part, code, says }) => {
    const held: Holding = {
      signal: new AbortController().signal,
      release: () => (release === undefined ? Promise.resolve() : Promise.reject(release)),
      ...(part === undefined ? {} : { part: () => Promise.reject(part) }),
    };
    const ended = await runUnder(held);
    expect(ended.code).toBe(code);
    expect(ended.told).toContain(says);
  });
});

test.each([
  { name: 'is not there', program: '/no/such/program', exit: 'notFound', why: 'command not found' },
  { name: 'is below a file', program: `${process.execPath}/program`, exit: 'cannotRun', why: 'ENOTDIR' },
  { name: 'is a directory', program: tmpdir(), exit: 'cannotRun', why: 'it is not executable' },
  { name: 'has no name', program: '', exit: 'notFound', why: 'command not found' },
])(
  'of a command that $name is said that it cannot run, and what it was to run under is given back',
  async ({ program, exit, why }) => {
    let givenBack = 0;
    const held: Holding = {
      signal: new AbortController().signal,
      release: async () => {
        givenBack++;
      },
    };
    await expect(runUnder(held, [program])).rejects.toThrow(
      expect.objectContaining({ exit, message: expect.stringMatching(new RegExp(`^cannot run .+: .*${why}`)) }),
    );
    expect(givenBack).toBe(1);
  },
);

test('a command that may not be sent signals keeps what it runs under until it has ended', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'remora-run-'));
  const path = join(directory, 'end');
  const told: string[] = [];
  const lost = new AbortController();
  let command: RunningCommand | undefined;
  let endedBefore: boolean | undefined;
  // As of a command that sudo runs: the system refuses to send it signals.
  const table = { ...systemProcessTable(), signal: () => 'refused' as const };
  try {
    const code = await runChild(
      async () => ({
        signal: lost.signal,
        release: async () => {
          endedBefore = command?.child.exitCode !== null;
        },
      }),
      {
        ...{ what: 'l', lost: 'the lock was lost', killAfterMs: 10, ttlMs: undefined, env: () => ({}) },
        argv: ['sh', '-c', 'until test -e "$0"; do sleep 0.05; done', path],
        system: { table, clock: nodeClock(), random: nodeRandom() },
        shell: {
          err: (text: string) => {
            told.push(text);
            if (text.includes('it keeps running')) writeFileSync(path, '');
          },
        } as unknown as Shell,
        onStart: (started) => {
          command = started;
          lost.abort(new Error('lost'));
        },
      },
    );
    expect({ code, endedBefore }).toEqual({ code: exitCode('lockLost'), endedBefore: true });
    expect(told.filter((text) => text.includes('could not signal the command to stop; it keeps running'))).toHaveLength(
      1,
    );
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test('a command is not started under what was given although the wait for it was given up', async () => {
  let started = false;
  let givenBack = false;
  const held: Holding = {
    signal: new AbortController().signal,
    release: async () => {
      givenBack = true;
    },
  };
  const acquire = async (): Promise<Holding> => {
    process.emit('SIGTERM', 'SIGTERM');
    return held;
  };
  const code = await runChild(acquire, {
    ...{
      what: 'l',
      lost: 'the lock was lost',
      argv: [process.execPath, '-e', '0'],
      killAfterMs: undefined,
      ttlMs: undefined,
    },
    shell: { err: () => {} } as unknown as Shell,
    env: () => ({}),
    onStart: () => {
      started = true;
    },
  });
  expect({ code, started, givenBack }).toEqual({ code: 128 + 15, started: false, givenBack: true });
});

test('a command whose lock was lost has as long to end as it was given, also when that is more than a month', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'remora-run-'));
  const ready = join(directory, 'ready');
  const lost = new AbortController();
  let command: RunningCommand | undefined;
  try {
    await runChild(async () => ({ signal: lost.signal, release: async () => {} }), {
      ...{ what: 'l', lost: 'the lock was lost', killAfterMs: 40 * 24 * 3_600_000, ttlMs: undefined },
      argv: ['sh', '-c', 'trap "" TERM; : > "$READY"; sleep 0.5; exit 5'],
      shell: { err: () => {} } as unknown as Shell,
      env: () => ({ READY: ready }),
      onStart: (started) => {
        command = started;
        const looking = setInterval(() => {
          if (existsSync(ready)) lost.abort(new Error('lost'));
        }, 5);
        started.child.once('exit', () => clearInterval(looking));
      },
    });
  } finally {
    rmSync(directory, { recursive: true });
  }
  expect([lost.signal.aborted, command?.child.exitCode, command?.child.signalCode]).toEqual([true, 5, null]);
});
