import { ServiceError } from '@remora/base';
import { expect, test } from 'vitest';
import { AdminLogIn } from './admin-log-in.ts';

const ADA = { with: 'password', user: 'ada', password: 'secret' } as const;

function node(...tokens: readonly (string | undefined)[]) {
  const asked: string[] = [];
  const authenticate = async ({ name }: { readonly name: string }): Promise<string | undefined> => {
    asked.push(name);
    return tokens[asked.length - 1];
  };
  return { asked, authenticate };
}

test('calls that begin together share one log-in, and its token serves until a node refuses it (AL1)', async () => {
  const { asked, authenticate } = node('one', 'two');
  const logIn = new AdminLogIn(ADA);
  expect(await Promise.all([logIn.token(authenticate), logIn.token(authenticate)])).toEqual(['one', 'one']);
  expect(await logIn.token(authenticate)).toBe('one');
  expect(asked).toEqual(['ada']);
  expect(logIn.refused('one')).toBe(true);
  expect(await logIn.token(authenticate)).toBe('two');
  logIn.refused('one'); // A late answer to a call with the old token.
  expect(await logIn.token(authenticate)).toBe('two');
  expect(asked).toHaveLength(2);
});

test('refused credentials are not tried again at once (AL2)', async () => {
  const { asked, authenticate } = node('one');
  const logIn = new AdminLogIn(ADA);
  logIn.remember(new ServiceError('UNAUTHENTICATED', 'wrong password'));
  await expect(logIn.token(authenticate)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  expect(asked).toEqual([]);
});

test('while authentication is off, calls carry no token until a node refuses one (AL3)', async () => {
  const { asked, authenticate } = node(undefined, 'one');
  const logIn = new AdminLogIn(ADA);
  expect([await logIn.token(authenticate), await logIn.token(authenticate)]).toEqual([undefined, undefined]);
  expect(asked).toHaveLength(1);
  expect(logIn.refused(undefined)).toBe(true);
  expect(await logIn.token(authenticate)).toBe('one');
});

test('a token that was given as text is not replaced; a function is asked again', async () => {
  const { authenticate } = node();
  const text = new AdminLogIn({ with: 'token', token: 'given' });
  expect(await text.token(authenticate)).toBe('given');
  expect(text.refused('given')).toBe(false);
  let calls = 0;
  const fresh = new AdminLogIn({ with: 'token', token: async () => `token ${++calls}` });
  expect(await fresh.token(authenticate)).toBe('token 1');
  expect(fresh.refused('token 1')).toBe(true);
  expect(await fresh.token(authenticate)).toBe('token 2');
});
