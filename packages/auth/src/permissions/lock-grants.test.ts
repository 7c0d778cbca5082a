import type { LockPermission, LockVerb } from '@remora/protocol';
import { expect, test } from 'vitest';
import { LockGrants } from './lock-grants.ts';

const b = (text: string): Buffer => Buffer.from(text);
const VERBS: readonly LockVerb[] = ['read', 'acquire', 'steer'];

const grants = (more: Partial<LockPermission>): LockGrants =>
  new LockGrants([{ namespace: 'shop', name: b('orders'), isPrefix: false, verb: 'acquire', ...more }]);

test('a permission for one lock does not cover what begins with its name', () => {
  const one = grants({});
  const covered = ['order', 'orders', 'orders/1'].filter((name) => one.coversLock('acquire', 'shop', b(name)));
  expect(covered).toEqual(['orders']);
  expect(one.covers('acquire', 'shop', b('orders'))).toBe(false);
});

test('a permission for a prefix covers all that begins with it, and nothing else', () => {
  const all = grants({ isPrefix: true });
  const names = ['order', 'orders', 'orders/1'];
  expect(names.filter((name) => all.coversLock('acquire', 'shop', b(name)))).toEqual(['orders', 'orders/1']);
  expect(names.filter((name) => all.covers('acquire', 'shop', b(name)))).toEqual(['orders', 'orders/1']);
});

test('every verb includes read, and no other verb', () => {
  const covered = VERBS.map((verb) =>
    VERBS.filter((wanted) => grants({ verb }).coversLock(wanted, 'shop', b('orders'))),
  );
  expect(covered).toEqual([['read'], ['read', 'acquire'], ['read', 'steer']]);
});

test('a permission is for its namespace, or for all', () => {
  expect(grants({}).coversLock('acquire', 'default', b('orders'))).toBe(false);
  expect(grants({ namespace: '' }).coversLock('acquire', 'default', b('orders'))).toBe(true);
  expect(grants({ isPrefix: true }).covers('read', '', b('orders'))).toBe(false);
});
