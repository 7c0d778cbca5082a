import { SeededRandom, type ServiceError, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { AuthImage } from '@remora/protocol';
import { expect, test } from 'vitest';
import type { Audit, AuditEvent } from './audit/audit.ts';
import { Authenticator } from './authenticator.ts';
import { PasswordHasher, type PasswordTask, type PasswordThread } from './credentials/password-hasher.ts';
import { TOKEN_LIFE_MS } from './credentials/tokens.ts';
import { AUTH_TRUST_MS, KnownAuth } from './known-auth.ts';

const image = (revision: number, more: Partial<AuthImage> = {}): AuthImage => ({
  ...{ enabled: true, revision, roles: [], tokenKey: Buffer.from('key') },
  users: [{ name: 'ada', passwordHash: 'pw', roles: [], version: 1 }],
  ...more,
});
const LOG_IN = { user: 'ada', password: 'pw', door: 'pipe', address: '10.0.0.1' } as const;
const FROM = { door: 'pipe', address: '10.0.0.1' } as const;

function bed(isAudited = false) {
  const clock = new ManualClock();
  const known = new KnownAuth({ clock, hurry: () => {} });
  known.learn(image(5), 0);
  const tasks: PasswordTask[] = [];
  let meanwhile = (): void => {};
  /** Passwords are their own hashes here. */
  const thread = (): PasswordThread => {
    let answered = (_result: string | boolean): void => {};
    return {
      start(on) {
        answered = on;
      },
      post(task) {
        tasks.push(task);
        queueMicrotask(() => {
          meanwhile();
          answered(task.type === 'hash' ? task.password : task.password === task.hash);
        });
      },
      stop() {},
    };
  };
  const hasher = new PasswordHasher(thread, String);
  const ports = { known, hasher, clock, random: new SeededRandom(1) };
  const recorded: AuditEvent[] = [];
  const logged: string[] = [];
  const logger = { ...silentLogger, warn: (fields: object) => void logged.push(JSON.stringify(fields)) };
  const audit: Audit = { isOn: isAudited, writes: false, record: (event) => void recorded.push(event) };
  const authenticator = new Authenticator({ ...ports, logger, audit });
  const who = (token: string | undefined, certificateName?: string): string => {
    try {
      const principal = authenticator.identify({ token, certificateName, ...FROM });
      return principal?.name === undefined ? 'nobody' : `${principal.name} by ${principal.method}`;
    } catch (error) {
      return (error as ServiceError).code;
    }
  };
  const during = (fn: () => void): void => {
    meanwhile = fn;
  };
  return { authenticator, clock, known, tasks, who, during, recorded, logged };
}

test('a token counts before a certificate, and one that is not valid is refused in spite of it (AU1)', async () => {
  const { authenticator, who } = bed();
  const token = await authenticator.logIn(LOG_IN);
  expect(who(token, 'bob')).toBe('ada by token');
  expect(who(undefined, 'bob')).toBe('bob by certificate');
  expect(who(undefined)).toBe('nobody');
  expect(who('none', 'bob')).toBe('UNAUTHENTICATED');
  expect(who(`${token.slice(0, -1)}A`)).toBe('UNAUTHENTICATED');
});

test('while authentication is off, right credentials name the caller, and wrong ones are not refused (AU2)', async () => {
  const { authenticator, known, who } = bed();
  const token = await authenticator.logIn(LOG_IN);
  known.learn(image(6, { enabled: false }), 0);
  expect([who(token), who('none', 'bob'), who(undefined, 'bob'), who(undefined)]).toEqual([
    ...['ada by token', 'nobody', 'bob by certificate', 'nobody'],
  ]);
  await expect(authenticator.logIn(LOG_IN)).rejects.toMatchObject({ code: 'AUTH_REFUSED' });
  expect(await authenticator.identifyByPassword(LOG_IN)).toMatchObject({ name: 'ada', method: 'password' });
  for (const wrong of [
    { ...LOG_IN, password: 'x' },
    { ...LOG_IN, user: 'eve' },
  ]) {
    expect(await authenticator.identifyByPassword(wrong)).toBeUndefined();
    expect(await authenticator.logInIfRight(wrong)).toBeUndefined();
  }
  expect(who(await authenticator.logInIfRight(LOG_IN))).toBe('ada by token');
});

test('users are known, and log in, while the masters are lost (AU6)', async () => {
  const { authenticator, clock, who } = bed();
  await expect(authenticator.logIn({ ...LOG_IN, password: 'wrong' })).rejects.toMatchObject({
    code: 'UNAUTHENTICATED',
  });
  clock.advance(2 * AUTH_TRUST_MS);
  expect(who(await authenticator.logIn(LOG_IN))).toBe('ada by token');
  expect(await authenticator.identifyByPassword(LOG_IN)).toMatchObject({ name: 'ada' });
  await expect(authenticator.logIn({ ...LOG_IN, password: 'wrong' })).rejects.toMatchObject({
    code: 'UNAVAILABLE',
  });
});

test('a log-in with a wrong password, or of nobody, is refused with the same words', async () => {
  const { authenticator, tasks } = bed();
  const wrong = await authenticator.logIn({ ...LOG_IN, password: 'x' }).catch((error: unknown) => error);
  const nobody = await authenticator.logIn({ ...LOG_IN, user: 'eve' }).catch((error: unknown) => error);
  expect((wrong as Error).message).toBe((nobody as Error).message);
  expect(tasks).toHaveLength(2);
});

test('a token is of the user as it was when the password was verified (AU3)', async () => {
  const { authenticator, known, who, during } = bed();
  const users = [{ name: 'ada', passwordHash: 'new', roles: [], version: 5 }];
  during(() => known.learn(image(6, { users }), 0));
  expect(who(await authenticator.logIn(LOG_IN))).toBe('UNAUTHENTICATED');
});

test('a remembered token ends when its user is deleted, and when tokens are signed with another key (AU4)', async () => {
  const { authenticator, known, who } = bed();
  const token = await authenticator.logIn(LOG_IN);
  expect(who(token)).toBe('ada by token');
  known.learn(image(6, { tokenKey: Buffer.from('other') }), 0);
  expect(who(token)).toBe('UNAUTHENTICATED');
  known.learn(image(7), 0);
  expect(who(token)).toBe('ada by token');
  known.learn(image(8, { users: [] }), 0);
  expect(who(token)).toBe('UNAUTHENTICATED');
});

test('a password of each request is verified once, and again when the user has another one (AU5)', async () => {
  const { authenticator, known, tasks } = bed();
  for (let i = 0; i < 3; i++) {
    const ada = { name: 'ada', method: 'password', version: 1, ...FROM };
    expect(await authenticator.identifyByPassword(LOG_IN)).toEqual(ada);
  }
  expect(tasks).toHaveLength(1);
  await expect(authenticator.identifyByPassword({ ...LOG_IN, password: 'x' })).rejects.toMatchObject({
    code: 'UNAUTHENTICATED',
  });
  const users = [{ name: 'ada', passwordHash: 'new', roles: [], version: 5 }];
  known.learn(image(6, { users }), 0);
  await expect(authenticator.identifyByPassword(LOG_IN)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  expect(tasks).toHaveLength(3);
});

test('each log-in and each token that is refused is recorded once, with its caller and without its secrets (AU7)', async () => {
  const { authenticator, who, recorded, logged, clock, known } = bed(true);
  const token = await authenticator.logIn(LOG_IN);
  await authenticator.identifyByPassword(LOG_IN);
  await authenticator.identifyByPassword(LOG_IN);
  const failing = { ...LOG_IN, password: 'sesame' };
  for (let i = 0; i < 2; i++) await authenticator.logIn(failing).catch(() => {});
  expect([who('forged'), who(token)]).toEqual(['UNAUTHENTICATED', 'ada by token']);
  clock.advance(6 * 60_000);
  known.learn(image(6, { users: [] }), clock.monotonicMs());
  expect(who(token)).toBe('UNAUTHENTICATED');
  const ada = { name: 'ada', method: 'password', ...FROM };
  const [in1, in2, ...refused] = recorded;
  expect([in1, in2]).toEqual([
    { action: 'logIn', decision: 'allowed', principal: ada },
    { action: 'logIn', decision: 'allowed', principal: ada },
  ]);
  expect(refused.map(({ action, decision }) => `${action} ${decision}`)).toEqual([
    'logIn failed',
    'logIn failed',
    'useToken failed',
    'useToken failed',
  ]);
  expect(refused.map(({ principal }) => principal?.address)).toEqual(Array(4).fill('10.0.0.1'));
  expect(authenticator.refused).toEqual({ password: 2, token: 2, busy: 0, off: 0 });
  expect(logged).toHaveLength(3); // the first of each reason, and one after a minute
  await authenticator.logIn({ ...LOG_IN, user: 'n'.repeat(1_000_000) }).catch(() => {});
  expect(recorded.at(-1)?.principal?.name).toHaveLength(256);
  const all = JSON.stringify([recorded, logged]);
  for (const secret of ['sesame', token, 'forged']) expect(all).not.toContain(secret);
});

test('while authentication is off, the audit log shows the address of a caller without a right credential (AU2)', () => {
  for (const isAudited of [false, true]) {
    const { authenticator, known } = bed(isAudited);
    known.learn(image(6, { enabled: false }), 0);
    for (const token of [undefined, 'forged']) {
      expect(authenticator.identify({ token, certificateName: undefined, ...FROM })).toEqual(
        isAudited ? { name: undefined, method: 'none', ...FROM } : undefined,
      );
    }
  }
});

test('only a valid token that was made for a browser is renewed, and nothing is recorded of it (AU7)', async () => {
  const { authenticator, clock, known, who, recorded } = bed(true);
  const [plain, own] = [await authenticator.logIn(LOG_IN), await authenticator.logIn(LOG_IN, true)];
  recorded.length = 0;
  expect(authenticator.renewed(own)).toBeUndefined();
  clock.advance(TOKEN_LIFE_MS / 2);
  known.learn(undefined, clock.monotonicMs());
  expect(authenticator.renewed(plain)).toBeUndefined();
  const next = authenticator.renewed(own) ?? '';
  clock.advance(TOKEN_LIFE_MS / 2);
  expect(authenticator.renewed(own)).toBeUndefined();
  expect(recorded).toEqual([]);
  expect([who(own), who(next)]).toEqual(['UNAUTHENTICATED', 'ada by token']);
  known.learn(image(6, { users: [{ name: 'ada', passwordHash: 'other', roles: [], version: 6 }] }), 0);
  expect(authenticator.renewed(next)).toBeUndefined();
});
