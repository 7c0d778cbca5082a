import { EMPTY_BYTES } from '@remora/base';
import type { AuthImage, KeyPermission, LockPermission, LockVerb, Role } from '@remora/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AuthState } from '../state/auth-state.ts';
import { Authority } from './authority.ts';
import { type Explainable, type Explanation, explain, type RolePermission } from './explanation.ts';

const b = (text: string): Buffer => Buffer.from(text);
const locks = (verb: LockVerb, name: string, isPrefix = true): LockPermission => ({
  ...{ namespace: 'shop', name: b(name), isPrefix, verb },
});
const role = (name: string, more: Partial<Role> = {}): Role => ({ name, keys: [], locks: [], ...more });
const user = (name: string, ...roles: readonly string[]) => ({ name, passwordHash: '', roles, version: 1 });

const LEFT: KeyPermission = { access: 'read', key: b('a'), end: b('m') };
const RIGHT: KeyPermission = { access: 'readWrite', key: b('m'), end: b('z') };
const IMAGE: AuthImage = {
  enabled: true,
  revision: 7,
  tokenKey: b('key'),
  users: [user('ann', 'left', 'right'), user('bob'), user('root', 'root')],
  roles: [
    role('left', { keys: [LEFT], locks: [locks('acquire', 'orders/')] }),
    role('ops', { locks: [locks('steer', '')] }),
    role('right', { keys: [RIGHT] }),
    role('root'),
  ],
};

const keys = (access: 'read' | 'write', key: string, end?: string): Explainable => ({
  ...{ type: 'keys', access, key: b(key) },
  ...(end !== undefined && { end: b(end) }),
});
const lock = (verb: LockVerb, name: string): Explainable => ({ type: 'lock', verb, namespace: 'shop', name: b(name) });

const allowedBy = (...through: readonly RolePermission[]): Explanation => ({ allowed: true, through });

describe('what is allowed is explained by the permissions that allow it', () => {
  const rows: readonly { readonly name: string; readonly need: Explainable; readonly by: readonly RolePermission[] }[] =
    [
      {
        name: 'one is enough',
        need: keys('read', 'b'),
        by: [{ role: 'left', permission: { type: 'keys', permission: LEFT } }],
      },
      {
        name: 'two together',
        need: keys('read', 'b', 'n'),
        by: [
          { role: 'left', permission: { type: 'keys', permission: LEFT } },
          { role: 'right', permission: { type: 'keys', permission: RIGHT } },
        ],
      },
      {
        name: 'a lock, which its taker may read',
        need: lock('read', 'orders/42'),
        by: [{ role: 'left', permission: { type: 'locks', permission: locks('acquire', 'orders/') } }],
      },
    ];
  test.each(rows)('$name', ({ need, by }) => {
    expect(explain(IMAGE, 'ann', [need])).toEqual(allowedBy(...by));
  });

  test('root may do everything', () => {
    const needs = [keys('write', 'x'), lock('steer', 'y'), { type: 'root', what: 'compact' } as const];
    expect(explain(IMAGE, 'root', needs)).toEqual(allowedBy({ role: 'root', permission: { type: 'all' } }));
  });
});

describe('what is refused is explained by what would have to be granted', () => {
  test('a lock: to the first role of the user; or a role that has it', () => {
    expect(explain(IMAGE, 'ann', [lock('steer', 'orders/42')])).toEqual({
      allowed: false,
      why: 'the user "ann" may not steer the lock "orders/42" of the namespace "shop"',
      missing: [{ role: 'left', permission: { type: 'locks', permission: locks('steer', 'orders/42', false) } }],
      sufficientRoles: ['ops'],
    });
  });

  test('another access to keys that the role has contains the one that it has (EX3)', () => {
    expect(explain(IMAGE, 'ann', [keys('write', 'a', 'm')])).toMatchObject({
      missing: [{ role: 'left', permission: { permission: { ...LEFT, access: 'readWrite' } } }],
    });
  });

  test('to read and to write is one permission', () => {
    expect(explain(IMAGE, 'bob', [keys('read', 'x'), keys('write', 'x')])).toMatchObject({
      missing: [{ role: undefined, permission: { permission: { access: 'readWrite', key: b('x') } } }],
    });
  });

  test('what only root may do', () => {
    expect(explain(IMAGE, 'ann', [{ type: 'root', what: 'compact' }])).toMatchObject({
      missing: [{ role: 'root', permission: { type: 'all' } }],
      sufficientRoles: [],
    });
  });
});

test('while authentication is off, it answers as if it were on (EX2)', () => {
  expect(explain({ ...IMAGE, enabled: false }, 'bob', [lock('read', 'x')]).allowed).toBe(false);
});

test('a user that does not exist is an error', () => {
  expect(() => explain(IMAGE, 'eve', [lock('read', 'x')])).toThrow(expect.objectContaining({ code: 'AUTH_REFUSED' }));
});

describe('for any roles', () => {
  const name = fc.constantFrom('a', 'ab', 'b', 'ba').map(b);
  const end = fc.option(fc.constantFrom(b('ab'), b('b'), b('c'), EMPTY_BYTES), { nil: undefined });
  const verb = fc.constantFrom<LockVerb>('read', 'acquire', 'steer');
  const span = fc.tuple(name, end).map(([key, last]) => ({ key, ...(last !== undefined && { end: last }) }));
  const keyPermission = fc.tuple(span, fc.constantFrom('read', 'write', 'readWrite')).map(([keySpan, access]) => ({
    ...keySpan,
    access,
  }));
  const lockPermission = fc.record({ namespace: fc.constantFrom('', 'shop'), name, isPrefix: fc.boolean(), verb });
  const someRole = fc.record({
    keys: fc.array(keyPermission, { maxLength: 3 }),
    locks: fc.array(lockPermission, { maxLength: 3 }),
  });
  const need: fc.Arbitrary<Explainable> = fc.oneof(
    fc.tuple(span, fc.constantFrom<'read' | 'write'>('read', 'write')).map(([keySpan, access]) => ({
      ...{ type: 'keys' as const, access },
      ...keySpan,
    })),
    fc.record({ type: fc.constant('lock' as const), verb, namespace: fc.constantFrom('shop', 'x'), name }),
    fc.record({ type: fc.constant('locks' as const), verb, namespace: fc.constantFrom('', 'shop'), prefix: name }),
  );

  /** Every other role is the user's. */
  function stateOf(roles: readonly (typeof someRole extends fc.Arbitrary<infer T> ? T : never)[]): AuthState {
    const state = new AuthState();
    state.apply({ type: 'addUser', user: 'ann', passwordHash: '' });
    for (const [i, each] of roles.entries()) {
      state.apply({ type: 'addRole', role: `r${i}` });
      for (const permission of each.keys) {
        state.apply({ type: 'grantKeys', role: `r${i}`, permission: permission as KeyPermission });
      }
      for (const permission of each.locks) state.apply({ type: 'grantLocks', role: `r${i}`, permission });
      if (i % 2 === 0) state.apply({ type: 'grantRole', user: 'ann', role: `r${i}` });
    }
    return state;
  }

  const may = ({ image }: AuthState, needs: readonly Explainable[]): boolean =>
    new Authority({ ...image, enabled: true }).decide('ann', needs).allowed;

  test('the verdict is that of the authority (EX1), and what it proposes suffices and takes nothing away (EX3)', () => {
    fc.assert(
      fc.property(
        fc.array(someRole, { minLength: 1, maxLength: 4 }),
        fc.array(need, { minLength: 1, maxLength: 2 }),
        fc.array(need, { maxLength: 4 }),
        (roles, needs, others) => {
          const state = stateOf(roles);
          const explanation = explain(state.image, 'ann', needs);
          expect(explanation.allowed).toBe(may(state, needs));
          if (explanation.allowed) return;
          const before = others.filter((other) => may(state, [other]));
          for (const { role: to, permission: granted } of explanation.missing) {
            if (granted.type === 'all' || to === undefined) throw new Error('a role of the user gets a permission');
            if (granted.type === 'keys') state.apply({ type: 'grantKeys', role: to, permission: granted.permission });
            else state.apply({ type: 'grantLocks', role: to, permission: granted.permission });
          }
          expect(may(state, needs)).toBe(true);
          expect(before.every((other) => may(state, [other]))).toBe(true);
          for (const sufficient of explanation.sufficientRoles) {
            const another = stateOf(roles);
            another.apply({ type: 'grantRole', user: 'ann', role: sufficient });
            expect(may(another, needs)).toBe(true);
          }
        },
      ),
      { numRuns: 500 },
    );
  });
});
