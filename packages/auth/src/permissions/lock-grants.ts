import type { Bytes } from '@remora/base';
import type { LockPermission, LockVerb } from '@remora/protocol';

/** What several permissions on locks allow together. */
export class LockGrants {
  readonly #permissions: readonly LockPermission[];

  constructor(permissions: readonly LockPermission[]) {
    this.#permissions = permissions;
  }

  /** Whether one permission covers every lock of the namespace whose name begins with the prefix. */
  covers(verb: LockVerb, namespace: string, prefix: Bytes): boolean {
    return this.#permissions.some(
      (each) =>
        (each.verb === verb || verb === 'read') &&
        (each.namespace === '' || each.namespace === namespace) &&
        beginsWith(prefix, each.prefix),
    );
  }
}

function beginsWith(name: Bytes, prefix: Bytes): boolean {
  return name.length >= prefix.length && prefix.every((byte, i) => name[i] === byte);
}
