import { toServiceError } from '@remora/base';
import type { KeyPermission } from '@remora/protocol';
import type * as pb from '@remora/protocol/etcd';
import type { AuthAdmin } from '../authorisation/auth-admin.ts';
import { fromKeys, invalid, named, toKeys, toSpan } from '../authorisation/key-permissions.ts';
import type { CallDone, CallInfo } from '../calls.ts';
import type { Headers } from './headers.ts';

type Header = { readonly header: pb.ResponseHeader | undefined };

/** etcd's `Permission_Type`. */
const ACCESS = ['read', 'write', 'readWrite'] as const;

/** `etcdserverpb.Auth` (etcd `server/auth/store.go`). Permissions on locks are Remora's own, and not shown here. */
export class EtcdAuth {
  readonly #headers: Headers;
  readonly #admin: AuthAdmin;

  constructor(headers: Headers, admin: AuthAdmin) {
    this.#headers = headers;
    this.#admin = admin;
  }

  authStatus(_request: pb.AuthStatusRequest, call: CallInfo, done: CallDone<pb.AuthStatusResponse>): undefined {
    const { enabled, revision } = this.#admin.image(call.principal);
    done(undefined, { header: this.#headers.latest(call.seen), enabled, authRevision: BigInt(revision) });
  }

  authEnable(_request: pb.AuthEnableRequest, call: CallInfo, done: CallDone<pb.AuthEnableResponse>): undefined {
    this.#answer(call, done, this.#admin.change(call, { type: 'enable' }));
  }

  authDisable(_request: pb.AuthDisableRequest, call: CallInfo, done: CallDone<pb.AuthDisableResponse>): undefined {
    this.#answer(call, done, this.#admin.change(call, { type: 'disable' }));
  }

  authenticate(
    { name: user, password }: pb.AuthenticateRequest,
    call: CallInfo,
    done: CallDone<pb.AuthenticateResponse>,
  ): undefined {
    this.#admin.logIn({ user, password, door: call.door ?? 'grpc', address: call.address ?? '' }).then(
      (token) => done(undefined, { header: this.#headers.latest(call.seen), token }),
      (error: unknown) => done(toServiceError(error), undefined),
    );
  }

  userAdd(request: pb.AuthUserAddRequest, call: CallInfo, done: CallDone<pb.AuthUserAddResponse>): undefined {
    const password = request.options?.noPassword === true ? undefined : request.password;
    this.#answer(call, done, this.#admin.addUser(call, named(request.name, 'user'), password));
  }

  userGet({ name }: pb.AuthUserGetRequest, call: CallInfo, done: CallDone<pb.AuthUserGetResponse>): undefined {
    const { roles } = this.#admin.user(call.principal, name);
    done(undefined, { header: this.#headers.latest(call.seen), roles: [...roles] });
  }

  userList(_request: pb.AuthUserListRequest, call: CallInfo, done: CallDone<pb.AuthUserListResponse>): undefined {
    const users = this.#admin.image(call.principal).users.map(({ name }) => name);
    done(undefined, { header: this.#headers.latest(call.seen), users });
  }

  userDelete(
    { name: user }: pb.AuthUserDeleteRequest,
    call: CallInfo,
    done: CallDone<pb.AuthUserDeleteResponse>,
  ): undefined {
    this.#answer(call, done, this.#admin.change(call, { type: 'deleteUser', user }));
  }

  userChangePassword(
    { name, password }: pb.AuthUserChangePasswordRequest,
    call: CallInfo,
    done: CallDone<pb.AuthUserChangePasswordResponse>,
  ): undefined {
    this.#answer(call, done, this.#admin.changePassword(call, name, password));
  }

  userGrantRole(
    { user, role }: pb.AuthUserGrantRoleRequest,
    call: CallInfo,
    done: CallDone<pb.AuthUserGrantRoleResponse>,
  ): undefined {
    this.#answer(call, done, this.#admin.change(call, { type: 'grantRole', user, role }));
  }

  userRevokeRole(
    { name: user, role }: pb.AuthUserRevokeRoleRequest,
    call: CallInfo,
    done: CallDone<pb.AuthUserRevokeRoleResponse>,
  ): undefined {
    this.#answer(call, done, this.#admin.change(call, { type: 'revokeRole', user, role }));
  }

  roleAdd({ name }: pb.AuthRoleAddRequest, call: CallInfo, done: CallDone<pb.AuthRoleAddResponse>): undefined {
    this.#answer(call, done, this.#admin.change(call, { type: 'addRole', role: named(name, 'role') }));
  }

  roleGet({ role }: pb.AuthRoleGetRequest, call: CallInfo, done: CallDone<pb.AuthRoleGetResponse>): undefined {
    const { keys } = this.#admin.role(call.principal, role);
    done(undefined, { header: this.#headers.latest(call.seen), perm: keys.map(fromPermission) });
  }

  roleList(_request: pb.AuthRoleListRequest, call: CallInfo, done: CallDone<pb.AuthRoleListResponse>): undefined {
    const roles = this.#admin.image(call.principal).roles.map(({ name }) => name);
    done(undefined, { header: this.#headers.latest(call.seen), roles });
  }

  roleDelete({ role }: pb.AuthRoleDeleteRequest, call: CallInfo, done: CallDone<pb.AuthRoleDeleteResponse>): undefined {
    this.#answer(call, done, this.#admin.change(call, { type: 'deleteRole', role }));
  }

  roleGrantPermission(
    { name: role, perm }: pb.AuthRoleGrantPermissionRequest,
    call: CallInfo,
    done: CallDone<pb.AuthRoleGrantPermissionResponse>,
  ): undefined {
    if (perm === undefined) throw invalid('permissionNotGiven', 'the field perm is missing');
    this.#answer(call, done, this.#admin.change(call, { type: 'grantKeys', role, permission: toPermission(perm) }));
  }

  roleRevokePermission(
    { role, key, rangeEnd }: pb.AuthRoleRevokePermissionRequest,
    call: CallInfo,
    done: CallDone<pb.AuthRoleRevokePermissionResponse>,
  ): undefined {
    this.#answer(call, done, this.#admin.change(call, { type: 'revokeKeys', role, span: toSpan(key, rangeEnd) }));
  }

  #answer({ seen }: CallInfo, done: CallDone<Header>, work: Promise<void>): void {
    work.then(
      () => done(undefined, { header: this.#headers.latest(seen) }),
      (error: unknown) => done(toServiceError(error), undefined),
    );
  }
}

function toPermission({ permType, key, rangeEnd }: pb.Permission): KeyPermission {
  const access = ACCESS[permType];
  if (access === undefined) throw invalid('invalidAuthManagement', `there is no permission of type ${permType}`);
  return { ...toKeys(key, rangeEnd), access };
}

function fromPermission(permission: KeyPermission): pb.Permission {
  const permType = ACCESS.indexOf(permission.access) as pb.Permission['permType'];
  return { permType, ...fromKeys(permission) };
}
