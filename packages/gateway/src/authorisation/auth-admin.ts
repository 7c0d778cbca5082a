/**
 * Users and roles, as administrators see and change them through this gateway.
 *
 * AA1. A change is answered when every live node decides by it. If that takes longer than the call, the error says that
 *      the change was made.
 * AA2. A change is sent once: if its answer is lost, the outcome is unknown. Sent again it might be refused because it
 *      was made.
 * AA3. No password leaves this process, only its hash.
 * AA4. The key that signs tokens is made with the first user.
 */
import type { Authenticator, KnownAuth, LogIn, PlainNeed, Principal } from '@remora/auth';
import { type Random, ServiceError } from '@remora/base';
import {
  type AuthChange,
  type AuthImage,
  masterAwaitAuth,
  masterChangeAuth,
  type Role,
  type User,
} from '@remora/protocol';
import type { ClusterCalls } from '../admin/cluster-calls.ts';

export interface AuthAdminDeps {
  readonly calls: ClusterCalls;
  readonly known: KnownAuth;
  readonly authenticator: Pick<Authenticator, 'logIn' | 'hashOf'>;
  readonly random: Pick<Random, 'bytes'>;
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

  /** A user, for itself and for the role root. */
  user(principal: Principal | undefined, name: string): User {
    if (principal?.name !== name) this.#check(principal);
    else this.#check(principal, [{ type: 'anyUser' }]);
    const user = this.#deps.known.image.users.find((each) => each.name === name);
    if (user === undefined) throw unknown('userNotFound', `there is no user "${name}"`);
    return user;
  }

  /** A role, for users who have it and for the role root. */
  role(principal: Principal | undefined, name: string): Role {
    const { users, roles } = this.#deps.known.image;
    const isOwn = users.some((user) => user.name === principal?.name && user.roles.includes(name));
    this.#check(principal, isOwn ? [{ type: 'anyUser' }] : MANAGES);
    const role = roles.find((each) => each.name === name);
    if (role === undefined) throw unknown('roleNotFound', `there is no role "${name}"`);
    return role;
  }

  /** `password`: undefined for a user who cannot log in with one. */
  async addUser(call: AuthCall, user: string, password: string | undefined): Promise<void> {
    this.#check(call.principal);
    const passwordHash = password === undefined ? '' : await this.#deps.authenticator.hashOf(password); // AA3
    await this.change(call, { type: 'addUser', user, passwordHash });
  }

  async changePassword(call: AuthCall, user: string, password: string): Promise<void> {
    this.#check(call.principal);
    const passwordHash = await this.#deps.authenticator.hashOf(password); // AA3
    await this.change(call, { type: 'changePassword', user, passwordHash });
  }

  change(call: AuthCall, change: AuthChange): Promise<void> {
    return this.changeAll(call, async (make) => make(change));
  }

  /** Makes several changes, one after the other, and answers when all nodes decide by the last one. */
  async changeAll(
    { principal, timeoutMs }: AuthCall,
    work: (make: (change: AuthChange) => Promise<void>) => Promise<void>,
  ): Promise<void> {
    this.#check(principal);
    let last = 0;
    await work(async (change) => {
      last = await this.#make(change, timeoutMs);
    });
    if (last > 0) await this.#confirmed(last, timeoutMs);
  }

  /** Returns the revision after the change. */
  async #make(change: AuthChange, timeoutMs: number): Promise<number> {
    const { calls, known, random } = this.#deps;
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

  /** Returns a token. */
  logIn(logIn: LogIn): Promise<string> {
    return this.#deps.authenticator.logIn(logIn);
  }

  #check(principal: Principal | undefined, needs = MANAGES): void {
    this.#deps.known.authority.check(principal?.name, needs);
  }
}

function unknown(etcd: string, message: string): ServiceError {
  return new ServiceError('AUTH_REFUSED', message, { details: { etcd } });
}
