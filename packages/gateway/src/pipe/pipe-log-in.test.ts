import { Authenticator, FIRST_AUTH, KnownAuth, PasswordHasher, type PasswordThread, TOKEN_LIFE_MS } from '@remora/auth';
import { SeededRandom, type ServiceError, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { AuthImage, PipeLogIn } from '@remora/protocol';
import { expect, test } from 'vitest';
import { anonymousConnection } from '../../test/support/no-authentication.ts';
import { logInPipe } from './pipe-log-in.ts';

/** Passwords are their own hashes here. */
class Thread implements PasswordThread {
  #answered = (_result: string | boolean): void => {};
  start(answered: (result: string | boolean) => void): void {
    this.#answered = answered;
  }
  post(task: Parameters<PasswordThread['post']>[0]): void {
    const result = task.type === 'hash' ? task.password : task.password === task.hash;
    queueMicrotask(() => this.#answered(result));
  }
  stop(): void {}
}

const image = (revision: number, version = 1): AuthImage => ({
  ...{ enabled: true, revision, roles: [], tokenKey: Buffer.from('key') },
  users: [{ name: 'ada', passwordHash: 'pw', roles: [], version }],
});

function bed(first: AuthImage = image(5)) {
  const clock = new ManualClock();
  const known = new KnownAuth({ clock, hurry: () => {} });
  known.learn(first, 0);
  const hasher = new PasswordHasher(() => new Thread(), String);
  const authenticator = new Authenticator({ known, hasher, clock, random: new SeededRandom(1), logger: silentLogger });
  const connection = anonymousConnection();
  const caller = { kind: 'client', connection } as const;
  const logIn = (request: PipeLogIn) => logInPipe(authenticator, caller, request);
  const who = (): string | undefined => {
    try {
      return authenticator.identify(connection)?.name;
    } catch (error) {
      return (error as ServiceError).code;
    }
  };
  return { clock, known, connection, logIn, who };
}
const PASSWORD: PipeLogIn = { with: 'password', user: 'ada', password: 'pw' };

test('a connection belongs to the user of its latest log-in that succeeded (PI1)', async () => {
  const { logIn, who } = bed();
  expect(who()).toBeUndefined();
  const { token, lifeMs } = await logIn(PASSWORD);
  expect([who(), lifeMs]).toEqual(['ada', TOKEN_LIFE_MS]);
  await expect(logIn({ ...PASSWORD, password: 'wrong' })).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  await expect(logIn({ with: 'token', token: `${token}x` })).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  expect(who()).toBe('ada');
});

test('a token of one connection logs in another one', async () => {
  const { logIn } = bed();
  const { token } = await logIn(PASSWORD);
  const other = bed();
  await other.logIn({ with: 'token', token });
  expect(other.who()).toBe('ada');
});

test('a log-in ends with its token, and with the password (PI2)', async () => {
  const { logIn, who, clock, known } = bed();
  await logIn(PASSWORD);
  known.learn(image(6), 0);
  expect(who()).toBe('ada');
  known.learn(image(7, 7), 0);
  expect(who()).toBe('UNAUTHENTICATED');
  await logIn(PASSWORD);
  expect(who()).toBe('ada');
  clock.advance(TOKEN_LIFE_MS);
  known.learn(undefined, clock.monotonicMs());
  expect(who()).toBe('UNAUTHENTICATED');
});

test('while authentication is off, a wrong log-in has no effect, and a right one names the caller (PI3)', async () => {
  const { logIn, who, connection, known } = bed({ ...FIRST_AUTH, ...image(1), enabled: false });
  const none = { token: '', lifeMs: TOKEN_LIFE_MS };
  expect(await logIn({ ...PASSWORD, password: 'whatever' })).toEqual(none);
  expect(await logIn({ ...PASSWORD, user: 'eve' })).toEqual(none);
  expect(await logIn({ with: 'token', token: 'none' })).toEqual(none);
  expect([who(), connection.token]).toEqual([undefined, undefined]);
  const { token } = await logIn(PASSWORD);
  expect([who(), connection.token]).toEqual(['ada', token]);
  known.learn(image(6), 0);
  expect(who()).toBe('ada');
});
