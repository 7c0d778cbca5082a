/**
 * Users, roles and permissions: the calls of `remora.v1.Auth` over HTTP.
 *
 * UR1. Who may make which, `AuthAdmin` decides, as for gRPC: the role root all of them; a user may look at itself, at
 *      its roles, and at what it may do.
 * UR2. No answer has a password or a hash.
 */
import { AUTH_LIMITS } from '@remora/auth';
import { ServiceError } from '@remora/base';
import type { auth } from '@remora/protocol/remora';
import type { AuthAdmin } from '../../authorisation/auth-admin.ts';
import { AuthApi } from '../../authorisation/auth-api.ts';
import { named } from '../../authorisation/key-permissions.ts';
import type { CallInfo } from '../../calls.ts';
import { type Fields, invalid } from '../fields.ts';
import type { CanJson, DoneJson, RoleJson, UserJson } from '../json/users.ts';
import { type HttpCall, param, type Route } from '../route.ts';
import type { HttpDetails } from '../statuses.ts';
import { onlyThese, type Target, text, wholeNumberIn } from '../targets.ts';
import { grantedJson, permissionsJson, readKeyPermission, readLockPermission } from './permission-json.ts';

interface UsersCall {
  readonly api: AuthApi;
  readonly admin: AuthAdmin;
  readonly info: CallInfo;
  readonly fields: Fields;
  readonly query: Target['query'];
  readonly param: (name: string) => string;
}

type Run = (call: UsersCall) => Promise<unknown>;
type Change = NonNullable<auth.ChangeRequest['change']>;

const USER = '/v1/users/{user}';
const USER_ROLE = `${USER}/roles/{role}`;
const ROLE = '/v1/roles/{role}';
const PAGE = ['after', 'limit'];

export const USERS_ROUTES: readonly Route[] = [
  route('GET', '/v1/users', PAGE, async ({ api, admin, info, query }) => {
    const { users } = await api.listUsers({}, info);
    const { items, next } = page(users, query);
    return { authentication: admin.caller(info.principal).enabled, users: items.map(userJson), ...next };
  }),
  route('GET', USER, [], async ({ api, info, param }) => userJson(await api.getUser({ name: param('user') }, info))),
  route('PUT', USER, [], ({ admin, info, param, fields }) => {
    const password = fields.text('password');
    fields.end();
    return done(admin.putUser(info, named(param('user'), 'user'), password));
  }),
  changes('DELETE', USER, ({ param }) => ({ $case: 'deleteUser', value: param('user') })),
  changes('PUT', USER_ROLE, (call) => ({ $case: 'grantRole', value: userAndRole(call) })),
  changes('DELETE', USER_ROLE, (call) => ({ $case: 'revokeRole', value: userAndRole(call) })),
  route('GET', '/v1/roles', PAGE, async ({ api, info, query }) => {
    const { items, next } = page((await api.listRoles({}, info)).roles, query);
    return { roles: items.map(roleJson), ...next };
  }),
  route('GET', ROLE, [], async ({ api, info, param }) => roleJson(await api.getRole({ name: param('role') }, info))),
  route('PUT', ROLE, [], ({ admin, info, param, fields }) => {
    fields.end();
    return done(admin.putRole(info, named(param('role'), 'role')));
  }),
  changes('DELETE', ROLE, ({ param }) => ({ $case: 'deleteRole', value: param('role') })),
  changes('POST', `${ROLE}/grant`, ({ param, fields }) => {
    const { $case, value: permission } = permissionOf(fields);
    const role = param('role');
    return $case === 'keys'
      ? { $case: 'grantKeys', value: { role, permission } }
      : { $case: 'grantLocks', value: { role, permission } };
  }),
  changes('POST', `${ROLE}/revoke`, ({ param, fields }) => {
    const { $case, value: permission } = permissionOf(fields);
    const role = param('role');
    return $case === 'keys'
      ? { $case: 'revokeKeys', value: { role, permission } }
      : { $case: 'revokeLocks', value: { role, permission } };
  }),
  route('POST', '/v1/can', [], async ({ api, info, fields }) => {
    const user = fields.text('user') ?? '';
    const what = fields.flag('administer')
      ? ({ $case: 'administer', value: {} } as const)
      : permissionOf(fields, ', or administer: true');
    fields.end();
    return canJson(await api.explain({ user, what }, info));
  }),
];

/** Time for a call; a change waits until all live nodes decide by it. */
const TIMEOUT_MS = 10_000;

function route(method: Route['method'], path: string, query: readonly string[], run: Run): Route {
  return {
    ...{ method, path },
    async handle({ auth: admin }, call) {
      onlyThese(call.target.query, query);
      if (method === 'GET' || method === 'DELETE') call.fields.end();
      try {
        return { status: 200, body: await run(callOf(admin, call)) };
      } catch (error) {
        throw notFound(error);
      }
    },
  };
}

function callOf(admin: AuthAdmin, call: HttpCall): UsersCall {
  const { principal, fields, target } = call;
  const info: CallInfo = { timeoutMs: TIMEOUT_MS, callerMs: undefined, seen: { newest: 0 }, principal };
  return {
    ...{ admin, info, fields },
    api: new AuthApi(admin),
    query: target.query,
    param: (name) => param(call, name),
  };
}

function changes(method: 'POST' | 'PUT' | 'DELETE', path: string, change: (call: UsersCall) => Change): Route {
  return route(method, path, [], (call) => {
    const asked = change(call);
    call.fields.end();
    return done(call.api.change({ change: asked }, call.info));
  });
}

async function done(made: Promise<unknown>): Promise<DoneJson> {
  await made;
  return { done: true };
}

/** HTTP has a status for it. */
function notFound(error: unknown): unknown {
  if (!(error instanceof ServiceError) || !MISSING.has(error.details?.etcd)) return error;
  const details = { ...error.details, httpStatus: 404 } satisfies HttpDetails;
  return new ServiceError(error.code, error.message, { cause: error, details });
}

const MISSING: ReadonlySet<unknown> = new Set(['userNotFound', 'roleNotFound']);

function userAndRole({ param }: UsersCall): { readonly user: string; readonly role: string } {
  return { user: param('user'), role: param('role') };
}

function permissionOf(fields: Fields, others = '') {
  const [keys, locks] = [fields.object('keys'), fields.object('locks')];
  if (keys !== undefined && locks === undefined) return { $case: 'keys', value: readKeyPermission(keys) } as const;
  if (locks !== undefined && keys === undefined) return { $case: 'locks', value: readLockPermission(locks) } as const;
  throw invalid(`give either keys or locks${others}`);
}

/** A page of what is in the order of its names. */
function page<Item extends { readonly name: string }>(
  all: readonly Item[],
  query: Target['query'],
): { readonly items: readonly Item[]; readonly next: { readonly next?: string } } {
  const limit = wholeNumberIn(query, 'limit', { otherwise: LIMIT, min: 1, max: AUTH_LIMITS.usersMax });
  const given = query.get('after');
  const after = given === undefined ? undefined : text(given, 'after');
  const begin = after === undefined ? 0 : all.findIndex(({ name }) => name > after);
  const rest = begin < 0 ? [] : all.slice(begin);
  const items = rest.slice(0, limit);
  const last = items.at(-1);
  return { items, next: rest.length > items.length && last !== undefined ? { next: last.name } : {} };
}

const LIMIT = 1_000;

function userJson({ name, roles, hasPassword }: auth.User): UserJson {
  return { name, roles, hasPassword };
}

function roleJson({ name, keys, locks }: auth.Role): RoleJson {
  return { name, ...permissionsJson({ keys, locks }) };
}

function canJson({ user, allowed, enabled, why, through, missing, sufficientRoles }: auth.ExplainResponse): CanJson {
  return {
    ...{ user, allowed, authentication: enabled, why },
    through: through.map(grantedJson),
    missing: missing.map(grantedJson),
    sufficientRoles,
  };
}
