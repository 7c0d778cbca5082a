import { ServiceError } from '@remora/base';
import type { auth } from '@remora/protocol/remora';
import type { CallInfo } from '../calls.ts';
import type { AuthAdmin } from './auth-admin.ts';
import { fromExplanation, fromRole, fromUser, toAuthChange, toExplainable } from './auth-messages.ts';

/** The calls of `remora.v1.Auth`. Who may make which, `AuthAdmin` decides. */
export class AuthApi {
  readonly #admin: AuthAdmin;

  constructor(admin: AuthAdmin) {
    this.#admin = admin;
  }

  async whoAmI(_request: auth.WhoAmIRequest, { principal }: CallInfo): Promise<auth.WhoAmIResponse> {
    const { enabled, exists, roles } = this.#admin.caller(principal);
    const { name: user = '', method = '' } = principal ?? {};
    return { enabled, user, method, exists, roles: roles.map(fromRole) };
  }

  async explain(request: auth.ExplainRequest, { principal }: CallInfo): Promise<auth.ExplainResponse> {
    const user = request.user === '' ? principal?.name : request.user;
    if (user === undefined) {
      throw new ServiceError('INVALID_ARGUMENT', 'you have not logged in; name the user to ask about');
    }
    const explanation = this.#admin.explain(principal, user, toExplainable(request));
    return fromExplanation(explanation, { user, enabled: this.#admin.caller(principal).enabled });
  }

  async getStatus(_request: auth.GetStatusRequest, { principal }: CallInfo): Promise<auth.GetStatusResponse> {
    const { enabled, revision, users, roles } = this.#admin.image(principal);
    return { enabled, revision, users: users.length, roles: roles.length };
  }

  async listUsers(_request: auth.ListUsersRequest, { principal }: CallInfo): Promise<auth.ListUsersResponse> {
    return { users: this.#admin.image(principal).users.map(fromUser) };
  }

  async getUser({ name }: auth.GetUserRequest, { principal }: CallInfo): Promise<auth.User> {
    return fromUser(this.#admin.user(principal, name));
  }

  async listRoles(_request: auth.ListRolesRequest, { principal }: CallInfo): Promise<auth.ListRolesResponse> {
    return { roles: this.#admin.image(principal).roles.map(fromRole) };
  }

  async getRole({ name }: auth.GetRoleRequest, { principal }: CallInfo): Promise<auth.Role> {
    return fromRole(this.#admin.role(principal, name));
  }

  async change(request: auth.ChangeRequest, call: CallInfo): Promise<auth.ChangeResponse> {
    const change = toAuthChange(request);
    if (change.type === 'addUser') await this.#admin.addUser(call, change.user, change.password);
    else if (change.type === 'setPassword') await this.#admin.changePassword(call, change.user, change.password);
    else if (change.type === 'revokeKeys') await this.#admin.revokeKeys(call, change, change.access);
    else await this.#admin.change(call, change);
    return {};
  }
}
