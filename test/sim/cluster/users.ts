/** Names, passwords, roles and rights in clusters whose authentication is on. */
import { hashPassword } from '@remora/auth';
import { type Bytes, EMPTY_BYTES } from '@remora/base';
import type { AuthChange } from '@remora/protocol';

/** The file on the machines of founding members. */
export const ROOT_PASSWORD_FILE = 'root-password';
/** The time without faults, in which users are added. */
export const QUIET_MS = 6_000;
/** Whoever has it may use all keys and locks, but not administer. */
const USES_ALL = 'uses-all';
const SALT = Buffer.from('salt of the simulation');
const LITTLE = { ln: 2, r: 1, p: 1 };

/** A hash like a real one that costs next to nothing. */
export function cheapHash(password: string, salt: Bytes): string {
  return hashPassword(password, salt, LITTLE);
}

export function passwordOf(user: string): string {
  return `password of ${user}`;
}

export function credentialsOf(user: string): { readonly user: string; readonly password: string } {
  return { user, password: passwordOf(user) };
}

export function userOfClient(clientId: number): string {
  return `client-${clientId}`;
}

export function addUser(user: string, role: string): readonly AuthChange[] {
  return [
    { type: 'addUser', user, passwordHash: cheapHash(passwordOf(user), SALT) },
    { type: 'grantRole', user, role },
  ];
}

export function newPassword(user: string, password: string): readonly AuthChange[] {
  return [{ type: 'changePassword', user, passwordHash: cheapHash(password, SALT) }];
}

/** The role and the users of all clients. */
export function clientUsers(clientIds: readonly number[]): readonly AuthChange[] {
  const all = { namespace: '', name: EMPTY_BYTES, isPrefix: true } as const;
  return [
    { type: 'addRole', role: USES_ALL },
    { type: 'grantKeys', role: USES_ALL, permission: { key: Buffer.from([0]), end: EMPTY_BYTES, access: 'readWrite' } },
    { type: 'grantLocks', role: USES_ALL, permission: { ...all, verb: 'acquire' } },
    { type: 'grantLocks', role: USES_ALL, permission: { ...all, verb: 'steer' } },
    ...clientIds.flatMap((id) => addUser(userOfClient(id), USES_ALL)),
  ];
}
