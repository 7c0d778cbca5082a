/** Logging in, users, roles and permissions. */
import { type Operation, type Operations, queryParameter } from './operation.ts';
import type { Schema } from './parts.ts';

const USER = '/v1/users/{user}';
const ROLE = '/v1/roles/{role}';
const NO_USER = { 404: 'There is no such user (AUTH_REFUSED).' };
const NO_ROLE = { 404: 'There is no such role (AUTH_REFUSED).' };
const NO_USER_OR_ROLE = { 404: 'There is no such user, or no such role (AUTH_REFUSED).' };
const REFUSED = { 409: 'The masters refuse it (AUTH_REFUSED); the message says why.' };
const ALL_DECIDE = 'Answered when all live nodes decide by it. It needs the role root while authentication is on.';
const PAGE: readonly Schema[] = [
  queryParameter('after', '`next` of the previous page.', { type: 'string' }),
  queryParameter('limit', 'The largest number of entries; default 1000.', {
    type: 'integer',
    minimum: 1,
    maximum: 10_000,
  }),
];

const changed = (id: string, summary: string, more: Partial<Operation> = {}): Operation => ({
  ...{ id, summary, description: ALL_DECIDE, answer: 'Changed' },
  ...more,
});

export const ACCESS_OPERATIONS: Operations = {
  '/v1/log-in': {
    post: {
      ...{ id: 'logIn', body: 'LogIn', answer: 'LoggedIn', errors: { 409: 'Authentication is off (AUTH_REFUSED).' } },
      summary: 'Logs in a browser.',
      description:
        'Sets the cookie remora_session, which scripts cannot read. A request with the cookie that is not GET needs ' +
        'the header x-remora-csrf: 1. The log-in ends after five minutes without a request, and after twelve hours. ' +
        'Programs send their password or token in the header Authorization instead, which counts before the cookie.',
    },
  },
  '/v1/log-out': {
    post: {
      ...{ id: 'logOut', body: 'NoFields', answer: 'LoggedOut' },
      summary: 'Removes the cookie from the browser.',
    },
  },
  '/v1/whoami': {
    get: { id: 'whoAmI', answer: 'WhoAmI', summary: 'Shows who is asking, and what the caller may do.' },
  },
  '/v1/users': {
    get: { id: 'listUsers', answer: 'Users', query: PAGE, summary: 'Lists the users. Needs the role root.' },
  },
  [USER]: {
    get: {
      ...{ id: 'showUser', answer: 'User', errors: NO_USER },
      summary: 'Shows a user: root all of them, others themselves.',
    },
    put: changed('putUser', 'Adds a user, or changes its password.', { body: 'PutUser', errors: REFUSED }),
    delete: changed('deleteUser', 'Deletes a user, and ends its log-ins.', { errors: NO_USER }),
  },
  [`${USER}/roles/{role}`]: {
    put: changed('grantRole', 'Gives a role to a user.', { body: 'NoFields', errors: NO_USER_OR_ROLE }),
    delete: changed('revokeRole', 'Takes a role from a user.', { errors: { ...NO_USER, ...REFUSED } }),
  },
  '/v1/roles': {
    get: {
      ...{ id: 'listRoles', answer: 'Roles', query: PAGE },
      summary: 'Lists the roles with their permissions. Needs the role root.',
    },
  },
  [ROLE]: {
    get: { id: 'showRole', answer: 'Role', errors: NO_ROLE, summary: 'Shows a role: root all, others their own.' },
    put: changed('putRole', 'Adds a role, unless there is one.', { body: 'NoFields', errors: REFUSED }),
    delete: changed('deleteRole', 'Deletes a role.', { errors: NO_ROLE }),
  },
  [`${ROLE}/grant`]: {
    post: changed('grantPermission', 'Gives a permission to a role.', {
      ...{ body: 'Permission', errors: NO_ROLE },
    }),
  },
  [`${ROLE}/revoke`]: {
    post: changed('revokePermission', 'Takes a permission from a role, named exactly as it was granted.', {
      ...{ body: 'Permission', errors: { ...NO_ROLE, ...REFUSED } },
    }),
  },
  '/v1/audit': {
    get: {
      ...{
        id: 'readAudit',
        answer: 'Audit',
        summary: 'Shows the newest records of the audit log. Needs the role root.',
      },
      errors: { 501: 'The node runs an earlier release, which keeps no records in memory (UNIMPLEMENTED).' },
      description:
        'Each node keeps its last 1,000 records in memory while authentication is on, or with --audit-log. A restart ' +
        'drops them. A page may be shorter than the limit although there is a next one.',
      query: [
        queryParameter('node', 'The node whose records are shown. Default: the one that answers.', {
          type: 'integer',
          minimum: 1,
        }),
        queryParameter('before', '`next` of the previous page.', { type: 'integer', minimum: 0 }),
        queryParameter('limit', 'The largest number of records; default 100.', {
          type: 'integer',
          minimum: 1,
          maximum: 1_000,
        }),
      ],
    },
  },
  '/v1/can': {
    post: {
      ...{ id: 'can', body: 'Can', answer: 'CanAnswer', errors: NO_USER },
      summary: 'Explains whether a user may do something: root for all users, others for themselves.',
      description: 'Answered as if authentication were on, so that permissions can be tried before that.',
    },
  },
};
