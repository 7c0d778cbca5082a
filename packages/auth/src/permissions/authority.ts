/**
 * Decides by one image of users and roles.
 *
 * D1. One decision uses one revision: an image never changes (auth-state.ts A3).
 * D2. What no rule allows is refused. Users that do not exist may do nothing, nor may callers who have not logged in:
 *     a request that needs nothing, such as a transaction without operations, still needs a user.
 * D3. A user with the role root may do everything. While authentication is off, every caller may.
 * D4. A need for a span is granted only if the whole span is permitted: answers are never filtered.
 * D5. A session of nobody, and a lease of plain keys, have no user as owner: no user has the name "".
 * D6. Who has logged in counts as the user of that time. Once the password changes, or the user is deleted, he may do
 *     nothing, also over a connection or a stream that began before. An expired token alone ends no stream.
 */

import { type Bytes, EMPTY_BYTES, ServiceError, unreachable } from '@remora/base';
import { type AuthImage, NO_OWNER, type User } from '@remora/protocol';
import type { OwnerNeed, PlainNeed } from '../needs/need.ts';
import type { Principal } from '../principal.ts';
import { ROOT } from '../root.ts';
import { KeySpans } from './key-spans.ts';
import { LockGrants } from './lock-grants.ts';

export type Verdict =
  | { readonly allowed: true }
  /** `need`: the first one that is not granted. */
  | { readonly allowed: false; readonly need: PlainNeed; readonly why: string };

interface Grants {
  readonly isRoot: boolean;
  readonly read: KeySpans;
  readonly write: KeySpans;
  readonly locks: LockGrants;
}

const ALLOWED: Verdict = { allowed: true };
/** D2. */
const NEEDS_NOTHING: readonly PlainNeed[] = [{ type: 'anyUser' }];

export class Authority {
  readonly #image: AuthImage;
  readonly #users: ReadonlyMap<string, User>;
  /** Worked out when a user first asks. */
  readonly #grants = new Map<string, Grants>();

  constructor(image: AuthImage) {
    this.#image = image;
    this.#users = new Map(image.users.map((user) => [user.name, user]));
  }

  get enabled(): boolean {
    return this.#image.enabled;
  }

  get revision(): number {
    return this.#image.revision;
  }

  user(name: string): User | undefined {
    return this.#users.get(name);
  }

  /** Whether a caller may do everything (D3). */
  mayDoEverything(user: string | undefined): boolean {
    return !this.#image.enabled || (user !== undefined && this.#grantsOf(user)?.isRoot === true);
  }

  /** `user` is undefined for a caller who has not logged in. */
  decide(user: string | undefined, needs: readonly PlainNeed[]): Verdict {
    if (!this.#image.enabled) return ALLOWED; // D3
    const grants = user === undefined ? undefined : this.#grantsOf(user);
    if (grants?.isRoot === true) return ALLOWED;
    for (const need of needs.length === 0 ? NEEDS_NOTHING : needs) {
      if (user === undefined || grants === undefined || !isGranted(user, grants, need))
        return { allowed: false, need, why: whyNot(user, grants, need) };
    }
    return ALLOWED;
  }

  /** @throws ServiceError `UNAUTHENTICATED` or `PERMISSION_DENIED` for the first need that is not granted. */
  check(principal: Principal | undefined, needs: readonly PlainNeed[]): void {
    if (this.#image.enabled) this.#checkVersion(principal);
    const user = principal?.name;
    const verdict = this.decide(user, needs);
    if (verdict.allowed) return;
    if (user === undefined) throw new ServiceError('UNAUTHENTICATED', verdict.why, { details: { etcd: 'userEmpty' } });
    throw new ServiceError('PERMISSION_DENIED', verdict.why, { details: { etcd: 'permissionDenied' } });
  }

  /** D6. */
  #checkVersion(principal: Principal | undefined): void {
    if (principal?.name === undefined || principal.version === undefined) return;
    const user = this.#users.get(principal.name);
    if (user?.version === principal.version) return;
    const why = user === undefined ? 'does not exist any more' : 'has another password now';
    throw new ServiceError('UNAUTHENTICATED', `the user "${principal.name}" ${why}; log in again`, {
      details: { etcd: 'invalidAuthToken' },
    });
  }

  /** D2. */
  #grantsOf(name: string): Grants | undefined {
    const known = this.#grants.get(name);
    if (known !== undefined) return known;
    const user = this.#users.get(name);
    if (user === undefined) return undefined;
    const roles = this.#image.roles.filter((role) => user.roles.includes(role.name));
    const keys = roles.flatMap((role) => role.keys);
    const grants: Grants = {
      isRoot: user.roles.includes(ROOT),
      read: new KeySpans(keys.filter(({ access }) => access !== 'write')),
      write: new KeySpans(keys.filter(({ access }) => access !== 'read')),
      locks: new LockGrants(roles.flatMap((role) => role.locks)),
    };
    this.#grants.set(name, grants);
    return grants;
  }
}

/** Of a user without the role root. */
function isGranted(user: string, { read, write, locks }: Grants, need: PlainNeed): boolean {
  switch (need.type) {
    case 'keys':
      return (need.access === 'read' ? read : write).covers(need);
    case 'lock':
      return locks.coversLock(need.verb, need.namespace, need.name);
    case 'locks':
      return locks.covers(need.verb, need.namespace, need.prefix);
    case 'owner':
      return need.owner === user || (need.orSteer && steersAll(locks)); // D5
    case 'sessions':
      return need.owner === user || steersAll(locks);
    case 'root':
      return false;
    case 'anyUser':
      return true;
    default:
      return unreachable(need);
  }
}

/** Sessions are in no namespace, and may hold any lock. */
function steersAll(locks: LockGrants): boolean {
  return locks.covers('steer', '', EMPTY_BYTES);
}

function whyNot(user: string | undefined, grants: Grants | undefined, need: PlainNeed): string {
  if (user === undefined)
    return 'authentication is on: log in with a user name and a password, a token or a certificate';
  // Only a certificate names a user who does not exist: who logged in before has another error (D6).
  if (grants === undefined)
    return `the user "${user}" of the certificate does not exist; root adds it with: remora auth user add`;
  return `the user "${user}" ${missing(need)}`;
}

/** `write the key "a"`. For people. */
export function needText(need: Extract<PlainNeed, { readonly type: 'keys' | 'lock' | 'locks' }>): string {
  switch (need.type) {
    case 'keys':
      return `${need.access} ${spanText(need)}`;
    case 'lock':
      return `${need.verb} the lock ${nameText(need.name)} of the namespace "${need.namespace}"`;
    case 'locks':
      return `${need.verb} ${locksText(need)}`;
    default:
      return unreachable(need);
  }
}

function missing(need: PlainNeed): string {
  switch (need.type) {
    case 'keys':
    case 'lock':
    case 'locks':
      return `may not ${needText(need)}`;
    case 'owner':
      return `may not ${need.what} ${ownedText(need)}`;
    case 'sessions':
      return `may not list the sessions of ${need.owner === undefined ? 'all users' : `the user "${need.owner}"`}: that needs steer on all locks of all namespaces, or the role root. List your own sessions by naming your user`;
    case 'root':
      return `needs the role root to ${need.what}`;
    case 'anyUser':
      return 'does not exist any more';
    default:
      return unreachable(need);
  }
}

function ownedText({ lease, owner, orSteer }: OwnerNeed): string {
  const id = BigInt.asUintN(64, lease).toString(16);
  const steer = orSteer ? ' That needs steer on all locks of all namespaces, or the role root' : '';
  if (owner === undefined) return `the lease ${id} as a session: it was not begun as one. Open a session`;
  if (owner === NO_OWNER) return `the session ${id}, which was begun without a user: open a new one.${steer}`;
  return `the session ${id}, which belongs to another user.${steer}`;
}

/** `the key "a"`. */
export function spanText({ key, end }: { readonly key: Bytes; readonly end?: Bytes }): string {
  if (end === undefined) return `the key ${nameText(key)}`;
  return end.length === 0 ? `the keys from ${nameText(key)} on` : `the keys from ${nameText(key)} to ${nameText(end)}`;
}

function locksText({ namespace, prefix }: { readonly namespace: string; readonly prefix: Bytes }): string {
  const which = prefix.length === 0 ? 'all locks' : `all locks that begin with ${nameText(prefix)}`;
  return namespace === '' ? `${which} of all namespaces` : `${which} of the namespace "${namespace}"`;
}

/** Text where it is text, hexadecimal otherwise. */
function nameText(name: Bytes): string {
  const text = Buffer.from(name).toString('utf8');
  const isText = !/[\p{C}\uFFFD]/u.test(text);
  return isText ? JSON.stringify(text) : `0x${Buffer.from(name).toString('hex')}`;
}
