/**
 * Users and roles, as administrators see and change them through this gateway.
 *
 * AA1. A change is answered when every live node decides by it. If that takes longer than the call, the error says that
 *      the change was made.
 * AA2. A change is sent once: if its answer is lost, the outcome is unknown. Sent again it might be refused because it
 *      was made.
 * AA3. No password leaves this process, only its hash.
 * AA4. The key that signs tokens is made with the first user.
 * AA5. Who switches authentication on learns in the log how many sessions have no user.
 * AA6. Each change is recorded once, with its outcome, and so is each refusal.
 */
import {
  type Audit,
  type Authenticator,
  type Explainable,
  type Explanation,
  explain,
  isSameSpan,
  type KeySpan,
  type KnownAuth,
  type LogIn,
  needText,
  type PlainNeed,
  type Principal,
  ROOT,
  spanText,
} from '@remora/auth';
import { type Logger, type Random, ServiceError, toServiceError } from '@remora/base';
import {
  type AuthChange,
  type AuthImage,
  type KeyAccess,
  type LockPermission,
  masterAwaitAuth,
  masterChangeAuth,
  type Role,
  type User,
} from '@remora/protocol';
import type { ClusterCalls } from '../admin/cluster-calls.ts';
import type { Backend } from '../backend.ts';
import { warnOfSessionsWithoutUser } from './sessions-without-user.ts';

/** Users may have this role without anybody having added it. */
const ROOT_ROLE: Role = { name: ROOT, keys: [], locks: [] };

export interface AuthAdminDeps {
  readonly calls: ClusterCalls;
  readonly known: KnownAuth;
  readonly authenticator: Pick<Authenticator, 'logIn' | 'hashOf'>;
  readonly random: Pick<Random, 'bytes'>;
  readonly backend: Pick<Backend, 'query'>;
  readonly logger: Logger;
  readonly audit?: Audit | undefined;
}

/** Who asks, and how long that may take. */
export interface AuthCall {
  readonly principal: Principal | undefined;
  readonly timeoutMs: number;
}

const TOKEN_KEY_BYTES = 32;
const MANAGES: readonly PlainNeed[] = [{ type: 'root', what: 'manage users and roles' }];

export class AuthAdmin {
  readonly #deps: AuthAdminDeps;
  /** AA4. This gateway has made it; its image may not show that yet. */
  #hasTokenKey = false;

  constructor(deps: AuthAdminDeps) {
    this.#deps = deps;
  }

  /** Everything, for the role root. */
  image(principal: Principal | undefined): AuthImage {
    this.#check(principal);
    return this.#deps.known.image;
  }

  /** What a caller is, and may do: for everybody. `exists`: false for a certificate that names no user. */
  caller(principal: Principal | undefined): {
    readonly enabled: boolean;
    readonly exists: boolean;
    readonly roles: readonly Role[];
  } {
    const { known } = this.#deps;
    // Also when the masters are lost: it decides nothing (known-auth.ts KA5).
    const { enabled } = known.lastKnown ?? known.authority;
    const { users, roles } = known.image;
    const user = users.find(({ name }) => name === principal?.name);
    const added = roles.filter(({ name }) => user?.roles.includes(name));
    const isBuiltIn = user?.roles.includes(ROOT) && !added.some(({ name }) => name === ROOT);
    return { enabled, exists: user !== undefined, roles: isBuiltIn ? [ROOT_ROLE, ...added] : added };
  }

  /** What a user may do, for itself and for the role root. */
  explain(principal: Principal | undefined, user: string, needs: readonly Explainable[]): Explanation {
    this.#check(principal, principal?.name === user ? [{ type: 'anyUser' }] : MANAGES);
    return explain(this.#deps.known.image, user, needs);
  }

  /** A user, for itself and for the role root. */
  user(principal: Principal | undefined, name: string): User {
    if (principal?.name !== name) this.#check(principal);
    else this.#check(principal, [{ type: 'anyUser' }]);
    const user = this.#deps.known.image.users.find((each) => each.name === name);
    if (user === undefined) throw refused('userNotFound', `there is no user "${name}"`);
    return user;
  }

  /** A role, for users who have it and for the role root. */
  role(principal: Principal | undefined, name: string): Role {
    const { users, roles } = this.#deps.known.image;
    const isOwn = users.some((user) => user.name === principal?.name && user.roles.includes(name));
    this.#check(principal, isOwn ? [{ type: 'anyUser' }] : MANAGES);
    const role = roles.find((each) => each.name === name);
    if (role === undefined) throw refused('roleNotFound', `there is no role "${name}"`);
    return role;
  }

  /** `password`: undefined for a user who cannot log in with one. */
  addUser(call: AuthCall, user: string, password: string | undefined): Promise<void> {
    return this.#recorded(call, { action: 'addUser', targets: [`the user ${JSON.stringify(user)}`] }, () =>
      this.#addUser(call, user, password),
    );
  }

  async #addUser(call: AuthCall, user: string, password: string | undefined): Promise<void> {
    this.#check(call.principal);
    const passwordHash = password === undefined ? '' : await this.#deps.authenticator.hashOf(password); // AA3
    await this.#changeAll(call, async (make) => make({ type: 'addUser', user, passwordHash }));
  }

  changePassword(call: AuthCall, user: string, password: string): Promise<void> {
    const what = { action: 'changePassword', targets: [`the user ${JSON.stringify(user)}`] };
    return this.#recorded(call, what, async () => {
      this.#check(call.principal);
      const passwordHash = await this.#deps.authenticator.hashOf(password); // AA3
      await this.#changeAll(call, async (make) => make({ type: 'changePassword', user, passwordHash }));
    });
  }

  /**
   * Takes a permission on keys from a role. With `access`, only if the role has exactly that: to revoke `read` must not
   * take `readWrite` from it.
   *
   * @throws ServiceError `AUTH_REFUSED` if it has another access to the same keys
   */
  revokeKeys(
    call: AuthCall,
    { role, span }: { readonly role: string; readonly span: KeySpan },
    access: KeyAccess | undefined,
  ): Promise<void> {
    const change: AuthChange = { type: 'revokeKeys', role, span };
    return this.#recorded(call, whatOf(change), async () => {
      this.#check(call.principal);
      if (access !== undefined) this.#requireAccess(call.principal, { role, span, access });
      await this.#changeAll(call, async (make) => make(change));
    });
  }

  #requireAccess(
    principal: Principal | undefined,
    { role, span, access }: { readonly role: string; readonly span: KeySpan; readonly access: KeyAccess },
  ): void {
    const had = this.role(principal, role).keys.find((each) => isSameSpan(each, span))?.access;
    if (had === undefined || had === access) return;
    const [has, asked] = [had.toLowerCase(), access.toLowerCase()];
    const message = `the role "${role}" has ${has} for these keys, not ${asked}; revoke ${has}, or grant what shall be left, which replaces it`;
    throw refused('permissionNotGranted', message);
  }

  change(call: AuthCall, change: AuthChange): Promise<void> {
    return this.#recorded(call, whatOf(change), () => this.#changeAll(call, async (make) => make(change)));
  }

  /** Makes several changes, one after the other, and answers when all nodes decide by the last one. */
  changeAll(call: AuthCall, work: (make: (change: AuthChange) => Promise<void>) => Promise<void>): Promise<void> {
    return this.#changeAll(call, (make) => work((change) => this.#recorded(call, whatOf(change), () => make(change))));
  }

  /** AA6. */
  async #recorded({ principal }: AuthCall, what: AuditedChange, act: () => Promise<void>): Promise<void> {
    const record = (decision: 'allowed' | 'denied' | 'failed', reason?: string) =>
      this.#deps.audit?.record({ ...what, decision, principal, reason });
    try {
      await act();
      record('allowed');
    } catch (cause) {
      const error = toServiceError(cause);
      const isRefusal = error.code === 'UNAUTHENTICATED' || error.code === 'PERMISSION_DENIED';
      record(isRefusal ? 'denied' : 'failed', error.message);
      throw error;
    }
  }

  async #changeAll(
    call: AuthCall,
    work: (make: (change: AuthChange) => Promise<void>) => Promise<void>,
  ): Promise<void> {
    this.#check(call.principal);
    let last = 0;
    await work(async (change) => {
      last = await this.#make(change, call);
    });
    if (last > 0) await this.#confirmed(last, call.timeoutMs);
  }

  /** Returns the revision after the change. */
  async #make(change: AuthChange, call: AuthCall): Promise<number> {
    const { calls, known, random } = this.#deps;
    const { timeoutMs } = call;
    if (change.type === 'enable') await warnOfSessionsWithoutUser(this.#deps, call); // AA5
    if (change.type === 'addUser' && known.image.tokenKey.length === 0 && !this.#hasTokenKey) {
      const key = random.bytes(TOKEN_KEY_BYTES);
      await calls.once(masterChangeAuth, { change: { type: 'setTokenKey', key } }, timeoutMs); // AA4
      this.#hasTokenKey = true;
    }
    const { revision } = await calls.once(masterChangeAuth, { change }, timeoutMs); // AA2
    return revision;
  }

  /** AA1. */
  async #confirmed(revision: number, timeoutMs: number): Promise<void> {
    const { calls, known } = this.#deps;
    // This node hears of it at once, the others within a heartbeat.
    known.whenKnown(revision, timeoutMs, () => {});
    try {
      await calls.master(masterAwaitAuth, { revision }, timeoutMs);
    } catch (cause) {
      const message = `users and roles were changed (revision ${revision}), but not all nodes have confirmed it in time`;
      throw new ServiceError('UNKNOWN_OUTCOME', message, { cause });
    }
  }

  /** Adds a user, or changes the password of one. Without a password, a user that exists stays as it is. */
  putUser(call: AuthCall, user: string, password: string | undefined): Promise<void> {
    const exists = this.#deps.known.image.users.some(({ name }) => name === user);
    if (!exists) return this.addUser(call, user, password);
    if (password !== undefined) return this.changePassword(call, user, password);
    return this.#unchanged(call, { action: 'addUser', targets: [`the user ${JSON.stringify(user)}`] });
  }

  /** Adds a role, unless there is one. */
  putRole(call: AuthCall, role: string): Promise<void> {
    const change: AuthChange = { type: 'addRole', role };
    const exists = this.#deps.known.image.roles.some(({ name }) => name === role);
    return exists ? this.#unchanged(call, whatOf(change)) : this.change(call, change);
  }

  #unchanged(call: AuthCall, what: AuditedChange): Promise<void> {
    return this.#recorded(call, what, async () => this.#check(call.principal));
  }

  /** Returns a token; with `isRenewable`, one that may be renewed. */
  logIn(logIn: LogIn, isRenewable = false): Promise<string> {
    return this.#deps.authenticator.logIn(logIn, isRenewable);
  }

  #check(principal: Principal | undefined, needs = MANAGES): void {
    this.#deps.known.authority.check(principal, needs);
  }
}

interface AuditedChange {
  readonly action: string;
  readonly targets: readonly string[];
}

function whatOf(change: AuthChange): AuditedChange {
  return { action: change.type, targets: targetsOfChange(change) };
}

/** Whom and what a change is about: no hash and no key that signs tokens. */
function targetsOfChange(change: AuthChange): readonly string[] {
  return [
    ...('user' in change ? [`the user ${JSON.stringify(change.user)}`] : []),
    ...('role' in change ? [`the role ${JSON.stringify(change.role)}`] : []),
    ...permissionTexts(change),
  ];
}

function permissionTexts(change: AuthChange): readonly string[] {
  switch (change.type) {
    case 'grantKeys': {
      const { access, ...span } = change.permission;
      const accesses = access === 'readWrite' ? (['read', 'write'] as const) : ([access] as const);
      return accesses.map((each) => needText({ type: 'keys', access: each, ...span }));
    }
    case 'revokeKeys':
      return [spanText(change.span)];
    case 'grantLocks':
    case 'revokeLocks':
      return [lockPermissionText(change.permission)];
    default:
      return [];
  }
}

function lockPermissionText({ verb, namespace, name, isPrefix }: LockPermission): string {
  return needText(
    isPrefix ? { type: 'locks', verb, namespace, prefix: name } : { type: 'lock', verb, namespace, name },
  );
}

function refused(etcd: string, message: string): ServiceError {
  return new ServiceError('AUTH_REFUSED', message, { details: { etcd } });
}
