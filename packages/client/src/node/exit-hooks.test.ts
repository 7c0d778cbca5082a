import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { exitHooks, type HookedProcess, processExitHooks } from './exit-hooks.ts';

class FakeProcess extends EventEmitter {
  readonly pid = 7;
  readonly killed: string[] = [];

  kill(pid: number, signal: string): true {
    this.killed.push(`${signal} to ${pid}`);
    return true;
  }

  get listening(): number {
    return this.eventNames().length;
  }
}

/** A process with a hook that ends when it is told to. */
function hooked() {
  const target = new FakeProcess();
  const hooks = exitHooks(target as unknown as HookedProcess);
  let runs = 0;
  let finish = (): void => {};
  const forget = hooks.beforeExit(() => {
    runs++;
    return new Promise((resolve) => {
      finish = resolve;
    });
  });
  return { target, hooks, forget, runs: () => runs, finish: () => finish() };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('a signal has its effect again when everything has run, and not before', async () => {
  const { target, runs, finish } = hooked();
  target.emit('SIGTERM', 'SIGTERM');
  await settled();
  expect([runs(), target.killed]).toEqual([1, []]);
  finish();
  await settled();
  expect(target.killed).toEqual(['SIGTERM to 7']);
});

test('a second signal finds no listener, so that it ends the process at once', () => {
  const { target } = hooked();
  target.emit('SIGINT', 'SIGINT');
  expect(target.listening).toBe(0);
});

test('a signal that the program listens to is left to the program', async () => {
  const { target, runs } = hooked();
  target.on('SIGINT', () => {});
  target.emit('SIGINT', 'SIGINT');
  await settled();
  expect([runs(), target.killed]).toEqual([0, []]);
  target.emit('SIGTERM', 'SIGTERM');
  expect(runs()).toBe(1);
});

test('a library that raises a signal again when it listens alone finds that it does, and others are told the next time', async () => {
  const { target, runs } = hooked();
  const alone: boolean[] = [];
  const library = (): unknown => alone.push(target.listenerCount('SIGINT') === 1);
  target.on('SIGINT', library);
  target.emit('SIGINT', 'SIGINT');
  await settled();
  target.emit('SIGINT', 'SIGINT');
  await settled();
  expect([alone, runs()]).toEqual([[true, true], 0]);
  target.off('SIGINT', library);
  target.emit('SIGINT', 'SIGINT');
  expect(runs()).toBe(1);
});

test('copies of the package share one', () => {
  const [one, other] = [processExitHooks(), processExitHooks()];
  expect(one).toBe(other);
  expect(Reflect.get(globalThis, Symbol.for('remora.exitHooks'))).toBe(one);
});

test('a hook that fails keeps no other one from running, and the process from ending', async () => {
  const { target, hooks, finish } = hooked();
  hooks.beforeExit(() => Promise.reject(new Error('failed')));
  target.emit('SIGHUP', 'SIGHUP');
  finish();
  await settled();
  expect(target.killed).toEqual(['SIGHUP to 7']);
});

test('a process that has nothing left to do runs the hooks once, and ends by itself', async () => {
  const { target, runs, finish } = hooked();
  target.emit('beforeExit', 0);
  finish();
  await settled();
  target.emit('beforeExit', 0);
  expect([runs(), target.killed, target.listening]).toEqual([1, [], 0]);
});

test('nothing listens once there is nothing to run', () => {
  const { target, hooks, forget } = hooked();
  const forgetOther = hooks.beforeExit(async () => {});
  forget();
  forget();
  expect(target.listening).toBe(4);
  forgetOther();
  expect(target.listening).toBe(0);
});
