/** The bodies of the calls about who is asking, users, roles and permissions. */
import { answer, bytes, count, object, type Schema, text } from './parts.ts';

const flag = (description: string): Schema => ({ type: 'boolean', description });
const listOf = (items: Schema): Schema => ({ type: 'array', items });
const texts: Schema = listOf({ type: 'string' });
const user = text('The name of the user.');
const password = text('The password. No answer has it, and no log.');
const authentication = flag('Whether authentication is on.');
const next = text('`after` of the next page. Absent: there is none.');

const keys = {
  ...object(
    {
      access: text('What is allowed.', { enum: ['read', 'write', 'readwrite'] }),
      key: bytes('One key.'),
      prefix: bytes('All keys with this prefix; empty: all keys.'),
      from: bytes('The keys from this one on.'),
      to: bytes('With from: the key behind the last one.'),
    },
    ['access'],
  ),
  description: 'Exactly one of key, prefix and from.',
};
const locks = {
  ...object(
    {
      verb: text('What is allowed. acquire and steer include read.', { enum: ['read', 'acquire', 'steer'] }),
      namespace: text('The namespace; empty: all. In a request, the default is default.'),
      name: bytes('One lock.'),
      prefix: bytes('All locks with this prefix; empty: all locks.'),
    },
    ['verb'],
  ),
  description: 'Exactly one of name and prefix.',
};
const permissions = { keys: listOf(keys), locks: listOf(locks) };
const granted = listOf({
  ...object({ role: text('The role. Absent: a new one.'), keys, locks }),
  description: 'Neither keys nor locks: everything.',
});
const userSchema = answer({
  ...{ name: user, roles: texts },
  hasPassword: flag('False: the user can only present a certificate.'),
});
const role = answer({ name: text('The name of the role.'), ...permissions });

const auditRecord = answer(
  {
    number: count('Counts the records of the node since it started.', { minimum: 1 }),
    timeMs: count('Wall time of the node, in ms since 1970.'),
    principal: text('Absent: the caller has not shown who it is.'),
    method: text('How the caller has shown who it is.'),
    address: text('From where, without the port.'),
    door: text('By which interface: pipe, grpc or http.'),
    action: text('What was asked for: logIn, put, addUser.'),
    decision: text('failed: the caller could not prove who it is, or was let in and got an error.', {
      enum: ['allowed', 'denied', 'failed'],
    }),
    targets: { ...texts, description: 'What the action needed, or what it changed.' },
    reason: text('Why it was denied, or failed.'),
    requestId: text('The id of the request.'),
  },
  ['principal', 'address', 'door', 'reason', 'requestId'],
);

export const ACCESS_SCHEMAS = {
  LogIn: object({ user, password }, ['user', 'password']),
  LoggedIn: answer({
    ...{ user, isRoot: flag('Whether the user has the role root.') },
    expiresInMs: count('The log-in ends after this time without a request.'),
  }),
  LoggedOut: answer({ loggedOut: { const: true } }),
  WhoAmI: answer(
    {
      authentication: flag('Whether authentication is on. If not, everybody may do everything.'),
      user: text('Absent: nobody has logged in.'),
      exists: flag('Whether there is such a user: a certificate may name none.'),
      isRoot: flag('Whether the user has the role root.'),
      how: text('How the caller has shown who it is; token: also by the cookie.', {
        enum: ['none', 'password', 'certificate', 'token'],
      }),
      roles: texts,
      permissions: answer(permissions),
    },
    ['user'],
  ),
  Users: answer({ authentication, users: listOf(userSchema), next }, ['next']),
  User: userSchema,
  PutUser: object({ password }),
  Roles: answer({ roles: listOf(role), next }, ['next']),
  Role: role,
  Permission: { ...object({ keys, locks }), description: 'Either keys or locks.' },
  Changed: answer({ done: { const: true } }),
  Audit: answer(
    {
      node: count('The node whose records these are.', { minimum: 1 }),
      isKept: flag('False: authentication is off, and there is no audit log, so that no new records are kept.'),
      records: { ...listOf(auditRecord), description: 'The newest first.' },
      next: count('`before` of the next page. Absent: the node keeps no older ones.'),
    },
    ['next'],
  ),
  Can: {
    ...object({ user: text('Default: the caller.'), keys, locks, administer: flag('To administer the cluster.') }),
    description: 'One of keys, locks and administer.',
  },
  CanAnswer: answer({
    ...{ user, allowed: flag('Whether it is allowed once authentication is on.'), authentication },
    why: text('Why it is not allowed; empty if it is.'),
    through: { ...granted, description: 'The permissions that allow it.' },
    missing: { ...granted, description: 'What to grant to allow it.' },
    sufficientRoles: { ...texts, description: 'Roles that allow it and that the user does not have.' },
  }),
};
