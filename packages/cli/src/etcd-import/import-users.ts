/**
 * Users and roles of etcd. Their passwords are bcrypt hashes, which Remora does not use, so users come without one, and
 * authentication is not switched on: nobody could log in.
 */
import type { BackupUsers } from '@remora/protocol';
import type { UsersImported } from '../backup/users.ts';
import { counted } from '../format/sizes.ts';
import type { EtcdPermission } from './etcd-rows.ts';
import type { EtcdSnapshot } from './etcd-snapshot.ts';

export function usersOf({ users, roles }: EtcdSnapshot): BackupUsers {
  return {
    enabled: false,
    users: users.map(({ name, roles: of }) => ({ name, passwordHash: '', roles: of })),
    roles: roles.map(({ name, permissions }) => ({ name, keys: permissions.map(keysOf), locks: [] })),
  };
}

function keysOf({ access, key, rangeEnd }: EtcdPermission): BackupUsers['roles'][number]['keys'][number] {
  if (rangeEnd.length === 0) return { access, key };
  const isOpen = rangeEnd.length === 1 && rangeEnd[0] === 0;
  return { access, key, end: isOpen ? Buffer.alloc(0) : rangeEnd };
}

/** What an import did about users. */
export function usersNotes(
  { users, roles, facts }: EtcdSnapshot,
  imported: UsersImported | undefined,
): readonly string[] {
  if (users.length + roles.length === 0) return [];
  const was = `authentication was ${facts.authEnabled ? 'on' : 'off'} in etcd`;
  if (imported === undefined) {
    return [`ignored ${counted(users.length, 'user')} and ${counted(roles.length, 'role')} (--with-users); ${was}`];
  }
  const { addedUsers, addedRoles, enabled } = imported;
  return [
    `added ${counted(addedRoles, 'role')}, and ${counted(addedUsers, 'user')} WITHOUT PASSWORDS: set them, then switch authentication on`,
    `${was}, and is ${enabled ? 'on' : 'off'} here`,
  ];
}
