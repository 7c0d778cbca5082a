/** Users and roles: between backups, and the calls of an administrator. */
import type { BackupUsers } from '@remora/protocol';
import type { admin } from '@remora/protocol/remora';
import type { AdminClient } from 'remora/admin';

/** Users, or roles, of one call. */
const CALL_ITEMS = 100;

export interface UsersImported {
  readonly addedUsers: number;
  readonly addedRoles: number;
  /** Users that existed, and kept their passwords. */
  readonly presentUsers: number;
  /** Authentication is on afterwards. */
  readonly enabled: boolean;
}

export async function exportUsers(client: Pick<AdminClient, 'exportUsers'>): Promise<BackupUsers> {
  const { enabled, users, roles } = await client.exportUsers();
  return {
    enabled,
    users,
    roles: roles.map(({ name, keys, locks }) => ({
      name,
      keys: keys.map(({ key, end, access }) => ({
        key,
        access: access as Access,
        ...(end === undefined ? {} : { end }),
      })),
      locks: locks.map(({ namespace, name: of, isPrefix, verb }) => ({
        namespace,
        name: of,
        isPrefix,
        verb: verb as Verb,
      })),
    })),
  };
}

type Access = BackupUsers['roles'][number]['keys'][number]['access'];
type Verb = BackupUsers['roles'][number]['locks'][number]['verb'];

/** Adds roles first, then users, and switches authentication on last, if it was on. */
export async function importUsers(
  client: Pick<AdminClient, 'importUsers'>,
  { enabled, users, roles }: BackupUsers,
): Promise<UsersImported> {
  const calls: admin.UsersAndRoles[] = [
    ...groups(roles.map(storedRole)).map((some) => ({ enabled: false, users: [], roles: [...some] })),
    ...groups(users).map((some) => ({
      enabled: false,
      users: some.map((user) => ({ ...user, roles: [...user.roles] })),
      roles: [],
    })),
    { enabled, users: [], roles: [] },
  ];
  let sum: UsersImported = { addedUsers: 0, addedRoles: 0, presentUsers: 0, enabled: false };
  for (const call of calls) {
    const { addedUsers, addedRoles, presentUsers, enabled: isOn } = await client.importUsers(call);
    sum = {
      addedUsers: sum.addedUsers + addedUsers,
      addedRoles: sum.addedRoles + addedRoles,
      presentUsers: sum.presentUsers + presentUsers,
      enabled: isOn,
    };
  }
  return sum;
}

function storedRole({ name, keys, locks }: BackupUsers['roles'][number]): admin.StoredRole {
  return {
    name,
    keys: keys.map(({ key, end, access }) => {
      const own = { key: Buffer.from(key), access };
      return end === undefined ? own : { ...own, end: Buffer.from(end) };
    }),
    locks: locks.map(({ name: of, ...others }) => ({ ...others, name: Buffer.from(of) })),
  };
}

function groups<T>(items: readonly T[]): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / CALL_ITEMS) }, (_, i) =>
    items.slice(i * CALL_ITEMS, (i + 1) * CALL_ITEMS),
  );
}
