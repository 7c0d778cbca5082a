import { ServiceError } from '@remora/base';
import type { AuthChange, KeyPermission, LockPermission } from '@remora/protocol';
import type { admin } from '@remora/protocol/remora';
import type { AuthAdmin } from '../authorisation/auth-admin.ts';
import type { CallInfo } from '../calls.ts';

/** Longer than any hash that this program makes. */
const HASH_BYTES_MAX = 512;
const ACCESS = ['read', 'write', 'readWrite'] as const;
const VERBS = ['read', 'acquire', 'steer'] as const;

/**
 * Users and roles in backups.
 *
 * UA1. An import adds, and never takes away: a user that exists keeps its password, so an import cannot lock out the
 *      one who makes it. It can be repeated after any failure.
 * UA2. Authentication is switched on last, when all users and roles are there.
 */
export class UsersApi {
  readonly #auth: AuthAdmin;

  constructor(auth: AuthAdmin) {
    this.#auth = auth;
  }

  async exportUsers(_request: admin.ExportUsersRequest, call: CallInfo): Promise<admin.UsersAndRoles> {
    const { enabled, users, roles } = this.#auth.image(call.principal);
    return {
      enabled,
      users: users.map(({ name, passwordHash, roles: of }) => ({ name, passwordHash, roles: [...of] })),
      roles: roles.map(({ name, keys, locks }) => ({
        name,
        keys: keys.map(({ key, end, access }) => ({
          key: Buffer.from(key),
          access,
          ...(end && { end: Buffer.from(end) }),
        })),
        locks: locks.map(({ name: of, ...others }) => ({ ...others, name: Buffer.from(of) })),
      })),
    };
  }

  async importUsers(
    { enabled, users, roles }: admin.UsersAndRoles,
    call: CallInfo,
  ): Promise<admin.ImportUsersResponse> {
    const changes = roles.map(permissionsOf);
    for (const user of users) checkHash(user);
    const added = { addedUsers: 0, addedRoles: 0, presentUsers: 0 };
    await this.#auth.changeAll(call, async (make) => {
      for (const [i, { name }] of roles.entries()) {
        if (await isNew(make({ type: 'addRole', role: name }), 'roleExists')) added.addedRoles++;
        for (const change of changes[i] ?? []) await make(change);
      }
      for (const { name: user, passwordHash, roles: of } of users) {
        if (await isNew(make({ type: 'addUser', user, passwordHash }), 'userExists')) added.addedUsers++;
        else added.presentUsers++; // UA1
        for (const role of of) await make({ type: 'grantRole', user, role });
      }
      if (enabled) await make({ type: 'enable' }); // UA2
    });
    return { ...added, enabled: enabled || this.#auth.image(call.principal).enabled };
  }
}

/** False if it exists already. */
async function isNew(made: Promise<void>, exists: string): Promise<boolean> {
  try {
    await made;
    return true;
  } catch (error) {
    if (error instanceof ServiceError && error.details?.etcd === exists) return false;
    throw error;
  }
}

function checkHash({ name, passwordHash }: admin.StoredUser): void {
  const bytes = Buffer.byteLength(passwordHash);
  if (bytes <= HASH_BYTES_MAX) return;
  const message = `the hash of the password of "${name}" has ${bytes} bytes; at most ${HASH_BYTES_MAX} are allowed`;
  throw new ServiceError('INVALID_ARGUMENT', message);
}

function permissionsOf({ name: role, keys, locks }: admin.StoredRole): readonly AuthChange[] {
  return [
    ...keys.map((keysOf): AuthChange => ({ type: 'grantKeys', role, permission: keyPermission(keysOf) })),
    ...locks.map((locksOf): AuthChange => ({ type: 'grantLocks', role, permission: lockPermission(locksOf) })),
  ];
}

function keyPermission({ key, end, access }: admin.KeysOfRole): KeyPermission {
  return { key, access: wordOf(access, ACCESS), ...(end === undefined ? {} : { end }) };
}

function lockPermission({ verb, ...locks }: admin.LocksOfRole): LockPermission {
  return { ...locks, verb: wordOf(verb, VERBS) };
}

function wordOf<Word extends string>(given: string, words: readonly Word[]): Word {
  const word = words.find((each) => each === given);
  if (word !== undefined) return word;
  throw new ServiceError('INVALID_ARGUMENT', `a permission has "${given}", which is none of ${words.join(', ')}`);
}
