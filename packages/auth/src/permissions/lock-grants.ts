import { type Bytes, compareBytes } from '@remora/base';
import type { LockPermission, LockVerb } from '@remora/protocol';

/** What several permissions on locks allow together. */
export class LockGrants {
  readonly #permissions: readonly LockPermission[];

  constructor(permissions: readonly LockPermission[]) {
    this.#permissions = permissions;
  }

  /** Whether one permission covers every lock of the namespace whose name begins with the prefix. */
  covers(verb: LockVerb, namespace: string, prefix: Bytes): boolean {
    return this.#permissions.some((each) => allowsLocks(each, { verb, namespace, name: prefix, isPrefix: true }));
  }

  /** Whether one permission covers the lock with this name. */
  coversLock(verb: LockVerb, namespace: string, name: Bytes): boolean {
    return this.#permissions.some((each) => allowsLocks(each, { verb, namespace, name, isPrefix: false }));
  }
}

/** Whether one permission allows all that another one would allow. Every verb includes `read`, and no other one. */
export function allowsLocks(permission: LockPermission, wanted: LockPermission): boolean {
  return (
    (permission.verb === wanted.verb || wanted.verb === 'read') &&
    (permission.namespace === '' || permission.namespace === wanted.namespace) &&
    (permission.isPrefix
      ? beginsWith(wanted.name, permission.name)
      : !wanted.isPrefix && compareBytes(permission.name, wanted.name) === 0)
  );
}

function beginsWith(name: Bytes, prefix: Bytes): boolean {
  return name.length >= prefix.length && prefix.every((byte, i) => name[i] === byte);
}
