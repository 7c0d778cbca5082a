import { EventEmitter } from 'node:events';
import { beforeEach, describe, expect, test } from 'vitest';
import { CRASH_BLOCK_MS, type CrashingProcess, CrashRegistry } from './crash-hooks.ts';

const A = { lease: 1n, incarnation: 1 };
const B = { lease: 2n, incarnation: 1 };
let target: EventEmitter & { captured: boolean };
let registry: CrashRegistry;
let nowMs: number;
let log: string[];

beforeEach(() => {
  [nowMs, log] = [0, []];
  target = Object.assign(new EventEmitter(), {
    captured: false,
    hasUncaughtExceptionCaptureCallback: () => target.captured,
  });
  registry = new CrashRegistry(
    target as unknown as CrashingProcess,
    () => nowMs,
    (_done, ms) => {
      log.push(`wait ${ms}`);
      nowMs += 400;
    },
  );
});

const crash = (): boolean => target.emit('uncaughtExceptionMonitor', new Error('boom'));
const hooks = (name: string) =>
  registry.hooksOf((sessions) => log.push(`${name} revokes ${sessions.map(({ lease }) => lease)}`));

describe('an uncaught exception', () => {
  test('revokes the sessions of all clients at once, and waits within one time (CR1)', () => {
    hooks('one').beforeCrash(() => [A, B]);
    hooks('other').beforeCrash(() => [B]);
    hooks('third').beforeCrash(() => [A]);
    crash();
    const revokes = ['one revokes 1,2', 'other revokes 2', 'third revokes 1'];
    expect(log).toEqual([...revokes, `wait ${CRASH_BLOCK_MS}`, `wait ${CRASH_BLOCK_MS - 400}`]);
  });

  test('costs nothing when nothing is held', () => {
    hooks('one').beforeCrash(() => []);
    crash();
    expect(log).toEqual([]);
  });

  test.each(['a listener', 'a capture callback'])('that %s handles revokes nothing (CR3)', (how) => {
    hooks('one').beforeCrash(() => [A]);
    if (how === 'a listener') target.on('uncaughtException', () => {});
    else target.captured = true;
    crash();
    expect(log).toEqual([]);
  });
});

test('nothing listens before the first client and after the last', () => {
  const forget = [hooks('one').beforeCrash(() => [A]), hooks('other').beforeCrash(() => [B])];
  expect(target.listenerCount('uncaughtExceptionMonitor')).toBe(1);
  forget[0]?.();
  crash();
  expect(log).toEqual(['other revokes 2', `wait ${CRASH_BLOCK_MS}`]);
  forget[1]?.();
  expect(target.listenerCount('uncaughtExceptionMonitor')).toBe(0);
});

test('the wait ends when the other thread is finished', () => {
  const real = new CrashRegistry(target as unknown as CrashingProcess, () => performance.now());
  let finished: Int32Array | undefined;
  const begin = (_: unknown, done: Int32Array<SharedArrayBuffer>): void => {
    Atomics.store(done, 0, 1); // As the other thread does.
    finished = done;
  };
  real.hooksOf(begin).beforeCrash(() => [A]);
  crash();
  expect(finished?.[0]).toBe(1);
});
