import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  checkToken,
  LOG_IN_LIFE_MS,
  nextToken,
  readToken,
  signToken,
  TOKEN_CHARACTERS_MAX,
  TOKEN_LIFE_MS,
  type Token,
} from './tokens.ts';

const KEY = Buffer.alloc(32, 7);
const TOKEN: Token = { user: 'änn', version: 3, endsMs: 1_000 };
const ANN = { name: 'änn', passwordHash: '', roles: [], version: 3 };

const refused = (says: string) =>
  expect.objectContaining({ code: 'UNAUTHENTICATED', message: expect.stringContaining(says) });

test('a token is read back as it was signed', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 40 }), fc.nat(), fc.nat(), (user, version, endsMs) => {
      expect(readToken(signToken({ user, version, endsMs }, KEY), KEY)).toEqual({ user, version, endsMs });
    }),
  );
});

test('a token with any character changed is refused (T1)', () => {
  const token = signToken(TOKEN, KEY);
  for (let i = 0; i < token.length; i++) {
    for (const other of ['A', '.', '_']) {
      const changed = token.slice(0, i) + other + token.slice(i + 1);
      // The last character of base64url carries bits that nobody reads.
      if (changed === token || i === token.length - 1) continue;
      expect(() => readToken(changed, KEY), changed).toThrow(refused('none of this cluster'));
    }
  }
});

const forged = [
  { name: 'empty', text: '' },
  { name: 'without a signature', text: 'r1.W10' },
  { name: 'with an empty signature', text: 'r1.W10.' },
  { name: 'signed with another key', text: signToken(TOKEN, Buffer.alloc(32, 8)) },
  { name: 'too long', text: 'x'.repeat(TOKEN_CHARACTERS_MAX + 1) },
  { name: 'of etcd', text: 'eyJhbGciOiJSUzI1NiJ9.e30.c2ln' },
];
test.each(forged)('refused: a token $name (T4)', ({ text }) => {
  expect(() => readToken(text, KEY)).toThrow(refused('none of this cluster'));
});

test('while the cluster has no key, every token is refused', () => {
  expect(() => readToken(signToken(TOKEN, Buffer.alloc(0)), Buffer.alloc(0))).toThrow(refused('none of this cluster'));
});

test('a token ends at its time, with its user, and with the password (T2, T3)', () => {
  expect(() => checkToken(TOKEN, ANN, 999)).not.toThrow();
  expect(() => checkToken(TOKEN, { ...ANN, roles: ['r'] }, 0)).not.toThrow();
  expect(() => checkToken(TOKEN, ANN, 1_000)).toThrow(refused('expired'));
  expect(() => checkToken(TOKEN, undefined, 0)).toThrow(refused('does not exist any more'));
  expect(() => checkToken(TOKEN, { ...ANN, version: 4 }, 0)).toThrow(refused('password of its user was changed'));
});

describe('the token that follows a token (T5)', () => {
  const first: Token = { user: 'ann', version: 3, endsMs: 1_000 + TOKEN_LIFE_MS, sinceMs: 1_000 };
  const half = 1_000 + TOKEN_LIFE_MS / 2;

  test('is made in the second half of its life, and remembers the log-in', () => {
    expect(nextToken(first, half - 1)).toBeUndefined();
    const next = nextToken(first, half);
    expect(next).toEqual({ ...first, endsMs: half + TOKEN_LIFE_MS });
    expect(readToken(signToken(next as Token, KEY), KEY)).toEqual(next);
  });

  test('ends with the log-in, however often it is renewed', () => {
    let token = first;
    for (let next = nextToken(token, token.endsMs - 1); next !== undefined; next = nextToken(token, token.endsMs - 1)) {
      token = next;
    }
    expect(token.endsMs).toBe(1_000 + LOG_IN_LIFE_MS);
  });

  test('is not made for a token that was not made for a browser', () => {
    const { sinceMs: _, ...plain } = first;
    expect(nextToken(plain, half)).toBeUndefined();
  });
});
