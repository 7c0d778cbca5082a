import { auth } from '@remora/protocol/remora';
import { object, text } from '../options/option-kinds.ts';
import type { AdminConnection } from './admin-connection.ts';

/** A change of users, roles or permissions, such as `{ $case: 'addRole', value: 'shop' }`. */
export type AuthChangeRequest = NonNullable<auth.ChangeRequest['change']>;

/** What a user would do: with keys, with locks, or as an administrator. */
export type AuthQuestion = NonNullable<auth.ExplainRequest['what']>;

/**
 * The calls of `remora.v1.Auth`: users, roles, and what roles may do with keys and locks. Without a user, and with a
 * user who lacks the role root, most of them end as UNAUTHENTICATED and PERMISSION_DENIED while authentication is on.
 */
export class AuthClient {
  readonly #connection: AdminConnection;

  /** @internal */
  constructor(connection: AdminConnection) {
    this.#connection = connection;
  }

  /** Who the caller is, as the node sees it, with its roles and their permissions. Everybody may ask. */
  whoAmI(): Promise<auth.WhoAmIResponse> {
    return this.#connection.call(auth.AuthService.whoAmI, {});
  }

  /**
   * Whether a user may do something, by which permissions, or what would have to be granted. Users may ask about
   * themselves. An empty `user` is the caller.
   *
   * @throws ServiceError AUTH_REFUSED when there is no such user.
   */
  async explain(user: string, what: AuthQuestion): Promise<auth.ExplainResponse> {
    text(user, 'user');
    object(what, 'what the user would do');
    return this.#connection.call(auth.AuthService.explain, { user, what });
  }

  /** Whether authentication is on, and how many users and roles there are. */
  status(): Promise<auth.GetStatusResponse> {
    return this.#connection.call(auth.AuthService.getStatus, {});
  }

  /** All users, in the order of their names. */
  async users(): Promise<readonly auth.User[]> {
    const { users } = await this.#connection.call(auth.AuthService.listUsers, {});
    return users;
  }

  /** One user. Users may see themselves. @throws ServiceError AUTH_REFUSED when there is no such user. */
  async user(name: string): Promise<auth.User> {
    text(name, 'name');
    return this.#connection.call(auth.AuthService.getUser, { name });
  }

  /** All roles with their permissions, in the order of their names. */
  async roles(): Promise<readonly auth.Role[]> {
    const { roles } = await this.#connection.call(auth.AuthService.listRoles, {});
    return roles;
  }

  /** One role. Users may see their own ones. @throws ServiceError AUTH_REFUSED when there is no such role. */
  async role(name: string): Promise<auth.Role> {
    text(name, 'name');
    return this.#connection.call(auth.AuthService.getRole, { name });
  }

  /**
   * Changes users, roles or permissions. Resolves when every live node decides by the change.
   *
   * @throws ServiceError AUTH_REFUSED when it names a user, a role or a permission that does not exist, or adds one
   *   that exists; UNKNOWN_OUTCOME when it may have been made.
   */
  async change(change: AuthChangeRequest): Promise<void> {
    object(change, 'the change of users and roles');
    await this.#connection.change(auth.AuthService.change, { change });
  }
}
