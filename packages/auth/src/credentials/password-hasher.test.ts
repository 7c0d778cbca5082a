import { beforeEach, expect, test } from 'vitest';
import { PasswordHasher, type PasswordTask, type PasswordThread } from './password-hasher.ts';

/** Answers when the test says so. */
class HeldThread implements PasswordThread {
  readonly tasks: PasswordTask[] = [];
  answered: (result: string | boolean) => void = () => {};
  failed: (error: Error) => void = () => {};
  stopped = false;

  start(answered: (result: string | boolean) => void, failed: (error: Error) => void): void {
    this.answered = answered;
    this.failed = failed;
  }
  post(task: PasswordTask): void {
    this.tasks.push(task);
  }
  stop(): void {
    this.stopped = true;
  }
}

let threads: HeldThread[];
let hasher: PasswordHasher;
beforeEach(() => {
  threads = [];
  hasher = new PasswordHasher(
    () => {
      const thread = new HeldThread();
      threads.push(thread);
      return thread;
    },
    (address) => address.replace(/:.*/, ':'),
    { waitingMax: 5, ofAddressMax: 2, ofUserMax: 3 },
  );
});

const logIn = (user: string, address = '10.0.0.1') => ({ user, password: `${user}'s`, door: 'pipe' as const, address });
const thread = (): HeldThread => threads.at(-1) ?? expect.fail('no thread');
const refused = (code: string, says: string) =>
  expect.objectContaining({ code, message: expect.stringContaining(says) });

/** How an attempt ends at once. One that waits must not hang the test. */
const endOf = (attempt: Promise<unknown> | undefined): Promise<unknown> =>
  Promise.race([
    attempt?.catch((error: unknown) => error),
    new Promise((resolve) => setImmediate(resolve, 'it waits')),
  ]);

test('one task is given to the thread at a time, in their order (PH1)', async () => {
  const answers = [hasher.verify(logIn('ann'), 'h1'), hasher.hash('new'), hasher.verify(logIn('bob'), 'h2')];
  expect(threads).toHaveLength(1);
  for (const [i, result] of [true, 'hash', false].entries()) {
    expect(thread().tasks).toHaveLength(i + 1);
    thread().answered(result);
  }
  expect(await Promise.all(answers)).toEqual([true, 'hash', false]);
  expect(thread().tasks).toEqual([
    { type: 'verify', password: "ann's", hash: 'h1' },
    { type: 'hash', password: 'new' },
    { type: 'verify', password: "bob's", hash: 'h2' },
  ]);
});

test('a flood from one address, or for one user, leaves room for others (PH2)', async () => {
  const held = [hasher.verify(logIn('a'), 'h'), hasher.verify(logIn('b'), 'h')];
  expect(await endOf(hasher.verify(logIn('c'), 'h'))).toEqual(refused('RESOURCE_EXHAUSTED', 'of the address 10.0.0.1'));
  held.push(hasher.verify(logIn('a', '10.0.0.2'), 'h'), hasher.verify(logIn('a', '10.0.0.3'), 'h'));
  expect(await endOf(hasher.verify(logIn('a', '10.0.0.4'), 'h'))).toEqual(
    refused('RESOURCE_EXHAUSTED', 'of the user a'),
  );
  held.push(hasher.verify(logIn('d', '10.0.0.4'), 'h'));
  expect(await endOf(hasher.verify(logIn('e', '10.0.0.5'), 'h'))).toEqual(refused('RESOURCE_EXHAUSTED', 'in all'));
  for (const one of held) {
    thread().answered(true);
    expect(await one).toBe(true);
  }
  const next = [hasher.verify(logIn('a'), 'h'), hasher.verify(logIn('a'), 'h')];
  for (const one of next) {
    thread().answered(false);
    expect(await one).toBe(false);
  }
});

test('a flood for one user from one address, or one network, leaves room for that user (PH2)', async () => {
  const flood = [1, 2, 3].map((n) => hasher.verify(logIn('root', `fd00:${n}`), 'h'));
  expect(await endOf(flood[2])).toEqual(refused('RESOURCE_EXHAUSTED', 'of the address fd00:'));
  const his = hasher.verify(logIn('root', '10.0.0.9'), 'h');
  for (const result of [false, false, true]) {
    thread().answered(result);
    await Promise.resolve();
  }
  expect(await his).toBe(true);
});

test('names and passwords that nobody has are wrong at once, however many there are (PH4)', async () => {
  const long = 'x'.repeat(1_025);
  const all = Array.from({ length: 20 }, () => [
    hasher.verify(logIn(long), 'h'),
    hasher.verify({ ...logIn('ann'), password: long }, 'h'),
  ]);
  expect(new Set(await Promise.all(all.flat()))).toEqual(new Set([false]));
  expect(threads).toEqual([]);
});

test('users that do not exist, or have no password, cost as much as others (PH3)', () => {
  void hasher.verify(logIn('nobody'), undefined);
  thread().answered(false);
  void hasher.verify(logIn('by certificate only'), '');
  for (const task of thread().tasks)
    expect(task).toMatchObject({ type: 'verify', hash: expect.stringMatching(/^\$scrypt\$ln=15,r=8,p=3\$/) });
});

test('when the thread fails, what waits fails, and another one takes what comes later', async () => {
  const lost = [hasher.verify(logIn('a'), 'h'), hasher.hash('x')];
  thread().failed(new Error('out of memory'));
  for (const one of lost) await expect(one).rejects.toThrow(refused('UNAVAILABLE', 'out of memory'));
  const next = hasher.hash('y');
  expect(threads).toHaveLength(2);
  thread().answered('hash');
  expect(await next).toBe('hash');
});

test('when the node stops, what waits fails, and so does what comes later', async () => {
  const lost = hasher.verify(logIn('a'), 'h');
  hasher.close();
  expect(thread().stopped).toBe(true);
  await expect(lost).rejects.toThrow(refused('UNAVAILABLE', 'stopping'));
  await expect(hasher.hash('x')).rejects.toThrow(refused('UNAVAILABLE', 'stopping'));
});

test('a password that nobody could log in with is refused before it waits', async () => {
  await expect(hasher.hash('')).rejects.toThrow(refused('INVALID_ARGUMENT', 'must not be empty'));
  expect(threads).toEqual([]);
});
