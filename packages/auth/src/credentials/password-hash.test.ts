import { expect, test } from 'vitest';
import { hashPassword, isPassword, PASSWORD_BYTES_MAX } from './password-hash.ts';

const SALT = Buffer.from('0123456789abcdef');

test('only the password of a hash matches it', () => {
  const hash = hashPassword('correct horse', SALT);
  expect(hash).toMatch(/^\$scrypt\$ln=15,r=8,p=3\$MDEyMzQ1Njc4OWFiY2RlZg\$[A-Za-z0-9+/]{43}$/);
  expect(isPassword('correct horse', hash)).toBe(true);
  for (const other of ['', 'correct hors', 'correct horse ', 'Correct horse', 'correct horse\0']) {
    expect(isPassword(other, hash), other).toBe(false);
  }
});

test('another form of the same characters is the same password', () => {
  expect(isPassword('caf\u0065\u0301', hashPassword('caf\u00e9', SALT))).toBe(true);
});

test('a hash with weaker parameters still counts (P1)', () => {
  // RFC 7914 §12: scrypt("pleaseletmein", "SodiumChloride", N = 2^14, r = 8, p = 1), its first 32 bytes.
  const salt = Buffer.from('SodiumChloride').toString('base64').replaceAll('=', '');
  const hash = Buffer.from('7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2', 'hex');
  expect(isPassword('pleaseletmein', `$scrypt$ln=14,r=8,p=1$${salt}$${hash.toString('base64').replace('=', '')}`)).toBe(
    true,
  );
});

const NO_HASHES = [
  { name: 'empty', hash: '' },
  { name: 'of bcrypt', hash: '$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy' },
  { name: 'without a hash', hash: '$scrypt$ln=15,r=8,p=1$MDEy$' },
  { name: 'that costs too much (P2)', hash: '$scrypt$ln=20,r=8,p=1$MDEy$MDEy' },
  { name: 'that costs nothing', hash: '$scrypt$ln=0,r=8,p=1$MDEy$MDEy' },
];
test.each(NO_HASHES)('no password fits a hash $name', ({ hash }) => {
  expect(isPassword('', hash)).toBe(false);
  expect(isPassword('x', hash)).toBe(false);
});

test.each([
  { name: 'empty', password: '' },
  { name: 'padded with NUL (P3)', password: 'correct horse\0' },
  { name: 'too long', password: 'x'.repeat(PASSWORD_BYTES_MAX + 1) },
])('a password that is $name is refused', ({ password }) => {
  expect(() => hashPassword(password, SALT)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
});
