import { inspect } from 'node:util';
import type { ServiceError } from '@remora/base';
import { expect, test } from 'vitest';
import { AdminClient } from '../node/admin-client.ts';
import { connect } from '../node/connect.ts';
import { type CredentialOptions, credentialsOf } from './credentials.ts';

const SECRET = 'hunter2';

test.each<{ name: string; given: CredentialOptions; says: RegExp }>([
  { name: 'token and user', given: { token: SECRET, user: 'ada' }, says: /either token, or user and password/ },
  {
    name: 'token and password',
    given: { token: SECRET, password: SECRET },
    says: /either token, or user and password/,
  },
  { name: 'a user alone', given: { user: 'ada' }, says: /user is given without password/ },
  { name: 'a password alone', given: { password: SECRET }, says: /password is given without user/ },
  { name: 'an empty user', given: { user: '', password: SECRET }, says: /user: must not be empty/ },
  { name: 'an empty password', given: { user: 'ada', password: '' }, says: /password: must not be empty/ },
  { name: 'an empty token', given: { token: '' }, says: /token: must not be empty/ },
  { name: 'NUL', given: { user: 'ada', password: `${SECRET}\0` }, says: /password: must not contain a NUL/ },
  { name: 'a long password', given: { user: 'ada', password: SECRET.repeat(200) }, says: /at most 1024 bytes/ },
  { name: 'a long token', given: { token: SECRET.repeat(400) }, says: /token: at most 2048 bytes/ },
  { name: 'half a character', given: { user: 'ada', password: `${SECRET}\ud800` }, says: /must be valid Unicode/ },
  { name: 'a password that is no text', given: { user: 'ada', password: [SECRET] as never }, says: /expected text/ },
])('$name is refused, without the secret', async ({ given, says }) => {
  for (const refused of [
    () => credentialsOf(given),
    () => connect({ endpoints: '127.0.0.1:1', ...given }),
    () => new AdminClient({ endpoints: ['127.0.0.1:1'], timeoutMs: 1_000, connectTimeoutMs: 1_000, ...given }),
  ]) {
    const error = await (async () => refused())().catch((caught: unknown) => caught as ServiceError);
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(says) });
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(SECRET);
  }
});

test.each([
  { endpoints: '127.0.0.1:1', allowed: true },
  { endpoints: 'http://localhost:1,[::1]:1', allowed: true },
  { endpoints: '10.0.0.1:1', allowed: false },
  { endpoints: '127.0.0.1:1,db1:1', allowed: false },
  { endpoints: 'https://10.0.0.1:1', allowed: true },
])('a password to $endpoints is allowed: $allowed', async ({ endpoints, allowed }) => {
  const options = { endpoints, user: 'ada', password: SECRET, connectTimeout: 1, releaseOnExit: false };
  const refused = { code: 'INVALID_ARGUMENT', message: expect.stringContaining('in plain text') };
  const error: unknown = await connect(options).catch((caught: unknown) => caught);
  if (allowed) expect(error).not.toMatchObject(refused);
  else expect(error).toMatchObject(refused);
  await expect(connect({ ...options, allowPlainText: true })).rejects.not.toMatchObject(refused);
});

test('an admin client shows no password', () => {
  const limits = { timeoutMs: 1_000, connectTimeoutMs: 1_000 };
  const admin = new AdminClient({ endpoints: ['127.0.0.1:1'], ...limits, user: 'ada', password: SECRET });
  expect(inspect(admin, { depth: 99, showHidden: true })).not.toContain(SECRET);
});
