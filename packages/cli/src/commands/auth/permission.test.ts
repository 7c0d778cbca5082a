import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CommandError } from '../../exit-codes.ts';
import {
  KEY_VERBS,
  LOCK_VERBS,
  type Permission,
  permissionWords,
  readPermission,
  type TargetFlags,
  type Verb,
} from './permission.ts';

const b = (text: string): Buffer => Buffer.from(text);
const keys = (access: string, key: Buffer, rangeEnd: Buffer): Permission => ({
  ...{ $case: 'keys', value: { access, span: { key, rangeEnd } } },
});
const locks = (verb: string, name: string, more: { namespace?: string; prefix?: boolean } = {}): Permission => ({
  ...{ $case: 'locks', value: { verb, namespace: 'default', name: b(name), prefix: false, ...more } },
});

const NONE = Buffer.of();
const OPEN = Buffer.of(0);

describe('what is typed is a permission, and is shown as it is typed', () => {
  const rows: readonly { readonly words: string; readonly permission: Permission }[] = [
    { words: 'read orders/42', permission: keys('read', b('orders/42'), NONE) },
    { words: 'readwrite orders/ --prefix', permission: keys('readwrite', b('orders/'), b('orders0')) },
    { words: 'write a --range-end c', permission: keys('write', b('a'), b('c')) },
    { words: 'read a --from-key', permission: keys('read', b('a'), OPEN) },
    { words: 'read --all', permission: keys('read', OPEN, OPEN) },
    { words: 'read 00ff --hex', permission: keys('read', Buffer.from([0, 0xff]), NONE) },
    { words: 'read ff --range-end ffff --hex', permission: keys('read', Buffer.of(0xff), Buffer.of(0xff, 0xff)) },
    { words: 'acquire orders/42', permission: locks('acquire', 'orders/42') },
    { words: 'acquire orders/ --prefix', permission: locks('acquire', 'orders/', { prefix: true }) },
    { words: 'read nightly --lock', permission: locks('read', 'nightly') },
    { words: 'steer --all --all-namespaces', permission: locks('steer', '', { namespace: '', prefix: true }) },
    { words: 'acquire a --namespace shop', permission: locks('acquire', 'a', { namespace: 'shop' }) },
  ];
  test.each(rows)('$words', ({ words, permission }) => {
    expect(read(words.split(' '))).toEqual(permission);
    expect(permissionWords(permission).join(' ')).toBe(words);
  });

  test('whatever it is (PL1)', () => {
    const name = fc.oneof(fc.uint8Array({ minLength: 1, maxLength: 3 }), fc.constantFrom(b('-a'), b("it's"), b('ä')));
    const bytes = name.map((each) => Buffer.from(each));
    const verb = <const T>(verbs: readonly T[]) => fc.constantFrom(...verbs);
    const end = fc.oneof(bytes, fc.constantFrom(NONE, OPEN));
    const key = fc
      .tuple(verb(KEY_VERBS), bytes, end)
      .filter(([, from, to]) => to.length === 0 || to.equals(OPEN) || Buffer.compare(from, to) < 0)
      .map(([access, from, to]) => keys(access, from, to));
    const lock = fc
      .record({ verb: verb(LOCK_VERBS), namespace: verb(['', 'default', 'shop']), name: bytes, prefix: fc.boolean() })
      .map((value): Permission => ({ $case: 'locks', value }));
    fc.assert(
      fc.property(fc.oneof(key, lock), (permission) => {
        expect(read(permissionWords(permission))).toEqual(permission);
      }),
    );
  });
});

/** As commander reads them. */
function read([verb, ...words]: readonly string[]): Permission {
  const flags: Record<string, string | true> = {};
  let target: string | undefined;
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    if (!word.startsWith('--')) target = word;
    else {
      const name = word.slice(2).replace(/-(.)/g, (_all, letter: string) => letter.toUpperCase());
      flags[name] = ['rangeEnd', 'namespace'].includes(name) ? (words[++i] ?? '') : true;
    }
  }
  return readPermission(verb as Verb, target, flags as TargetFlags);
}

const wrong: readonly {
  readonly verb: Verb;
  readonly target?: string;
  readonly flags: TargetFlags;
  readonly says: RegExp;
}[] = [
  { verb: 'read', flags: {}, says: /give either a target, or --all/ },
  { verb: 'read', target: 'a', flags: { all: true }, says: /give either a target, or --all/ },
  { verb: 'read', target: '', flags: { prefix: true }, says: /the target is empty/ },
  { verb: 'write', target: 'a', flags: { lock: true }, says: /write is for keys; locks have the verbs/ },
  { verb: 'read', target: 'a', flags: { namespace: 'x' }, says: /keys are in no namespace; for a lock, add --lock/ },
  { verb: 'acquire', target: 'a', flags: { rangeEnd: 'b' }, says: /are for keys/ },
  { verb: 'acquire', target: 'a', flags: { namespace: 'x', allNamespaces: true }, says: /not both/ },
  { verb: 'read', target: 'a', flags: { prefix: true, fromKey: true }, says: /give one of --prefix/ },
  { verb: 'read', target: 'b', flags: { rangeEnd: 'a' }, says: /it must be behind b/ },
  { verb: 'read', target: 'xyz', flags: { hex: true }, says: /pairs of hex digits/ },
];
test.each(wrong)('refused: $says', ({ verb, target, flags, says }) => {
  expect(() => readPermission(verb, target, flags)).toThrow(CommandError);
  expect(() => readPermission(verb, target, flags)).toThrow(says);
});
