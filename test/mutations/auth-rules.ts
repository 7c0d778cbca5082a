/** Who may do what: each check taken out, and its test. */
import type { RuleMutation } from './mutation.ts';

const BACKEND = 'packages/gateway/src/authorisation/authorised-backend.test.ts';
const KNOWN = 'packages/auth/src/known-auth.test.ts';
const AUTHENTICATOR = 'packages/auth/src/authenticator.test.ts';
const LOCK_GRANTS = 'packages/auth/src/permissions/lock-grants.test.ts';
const EXPLANATION = 'packages/auth/src/permissions/explanation.test.ts';
const CREDENTIALS = 'packages/cli/src/commands/credentials.test.ts';
const API = 'packages/gateway/src/authorisation/auth-api.test.ts';
const REPLICA = 'packages/dataserver/src/range/range-replica.test.ts';

export const AUTH_RULES: readonly RuleMutation[] = [
  {
    name: 'rescues-are-for-everybody',
    rule: 'what is needed without masters is decided by what the node knew last (known-auth.ts KA5)',
    file: 'packages/gateway/src/authorisation/decisions.ts',
    find: 'known.lastKnown?.check(principal?.name, needs);',
    replace: '',
    killedBy: {
      file: BACKEND,
      test: 'what is needed without masters is decided by what the node knew last; all else waits for them (KA5)',
    },
  },
  {
    name: 'everything-is-a-rescue',
    rule: 'only what says so is decided without masters (known-auth.ts KA5)',
    file: 'packages/gateway/src/authorisation/decisions.ts',
    find: 'needs.length > 0 && needs.every(isWithoutMasters)',
    replace: 'needs.length > 0 && needs.some(isWithoutMasters)',
    killedBy: {
      file: BACKEND,
      test: 'what is needed without masters is decided by what the node knew last; all else waits for them (KA5)',
    },
  },
  {
    name: 'kept-users-are-trusted',
    rule: 'what an earlier life has learned decides about nothing else (known-auth.ts KA6)',
    file: 'packages/auth/src/known-auth.ts',
    find: 'if (known === undefined || this.revision === 0) {',
    replace: 'if (known === undefined) {',
    killedBy: {
      file: KNOWN,
      test: 'is kept for later lives, which decide by it only what is needed without masters (KA6)',
    },
  },
  {
    name: 'nobody-logs-in-without-masters',
    rule: 'who is asking follows from what the node knew last (authenticator.ts AU6)',
    file: 'packages/auth/src/authenticator.ts',
    find: 'return this.#known.lastKnown ?? this.#known.authority;',
    replace: 'return this.#known.authority;',
    killedBy: { file: AUTHENTICATOR, test: 'users are known, and log in, while the masters are lost (AU6)' },
  },
  {
    name: 'refused-commands-are-sent',
    rule: 'a request that is not allowed never reaches a range (authorised-backend.ts AB1)',
    file: 'packages/gateway/src/authorisation/decisions.ts',
    find: 'authority.check(asking.principal?.name, asking.needs.filter(isPlain));',
    replace: 'authority.check(asking.principal?.name, []);',
    killedBy: { file: BACKEND, test: 'that is not allowed, or whose caller is nobody, never reaches a range' },
  },
  {
    name: 'watches-begin-unchecked',
    rule: 'a watch that is not allowed is never begun (authorised-backend.ts AB1)',
    file: 'packages/gateway/src/authorisation/authorised-backend.ts',
    find: 'return refusal !== undefined;',
    replace: 'return false;',
    killedBy: { file: BACKEND, test: 'that is not allowed is never begun, and its client hears that in a later turn' },
  },
  {
    name: 'watches-outlive-permissions',
    rule: 'watches and waits end when they are no longer allowed (authorised-backend.ts AB4)',
    file: 'packages/gateway/src/authorisation/authorised-backend.ts',
    find: 'known.onChange(() => this.#decideLasting());',
    replace: '',
    killedBy: {
      file: BACKEND,
      test: 'hears that its client may not acquire the lock any more (AB4)',
    },
  },
  {
    name: 'lease-keys-are-not-needed',
    rule: 'what a lease has is decided about, by the revision of the whole request (decisions.ts DE1)',
    file: 'packages/gateway/src/authorisation/decisions.ts',
    find: 'const refusal = refusalOf(() => this.check(principal, needs));',
    replace: 'const refusal = undefined;',
    killedBy: { file: BACKEND, test: 'is decided by the keys that the lease has' },
  },
  {
    name: 'leaders-take-old-decisions',
    rule: 'a request that was allowed by older users and roles is sent back (range-requests.ts RE3)',
    file: 'packages/dataserver/src/range/requests/range-requests.ts',
    find: 'authRevision !== 0 && authRevision < this.#deps.authRevision();',
    replace: 'false;',
    killedBy: {
      file: REPLICA,
      test: 'a request that was allowed by older users and roles is sent back, unless its outcome is known (RE3, CM6)',
    },
  },
  {
    name: 'old-images-are-taken',
    rule: 'what a node knows of users and roles only becomes newer (known-auth.ts KA1)',
    file: 'packages/auth/src/known-auth.ts',
    find: 'if (image === undefined || image.revision <= this.revision) return; // KA1',
    replace: 'if (image === undefined) return;',
    killedBy: { file: KNOWN, test: 'only becomes newer (KA1)' },
  },
  {
    name: 'cut-off-nodes-go-on-for-ever',
    rule: 'a node that is cut off from the masters refuses after a time (known-auth.ts KA2)',
    file: 'packages/auth/src/known-auth.ts',
    find: 'this.#deps.clock.monotonicMs() >= this.#trustedUntilMs',
    replace: 'false',
    killedBy: {
      file: KNOWN,
      test: 'is trusted for a time from when the masters were asked, not from when they answered (KA2)',
    },
  },
  {
    name: 'certificates-make-up-for-bad-tokens',
    rule: 'a token that is not valid is refused, even if there is a certificate (authenticator.ts AU1)',
    file: 'packages/auth/src/authenticator.ts',
    find: 'if (token !== undefined) return this.#ofToken(token); // AU1',
    replace: 'if (token !== undefined && certificateName === undefined) return this.#ofToken(token);',
    killedBy: {
      file: AUTHENTICATOR,
      test: 'a token counts before a certificate, and one that is not valid is refused in spite of it (AU1)',
    },
  },
  {
    name: 'tokens-outlive-the-password',
    rule: 'a token is of the user as it was when the password was verified (authenticator.ts AU3)',
    file: 'packages/auth/src/credentials/tokens.ts',
    find: 'if (user.version !== version) throw',
    replace: 'if (false) throw',
    killedBy: { file: AUTHENTICATOR, test: 'a token is of the user as it was when the password was verified (AU3)' },
  },
  {
    name: 'one-lock-is-a-prefix',
    rule: 'a permission for one lock does not cover what begins with its name (lock-grants.ts)',
    file: 'packages/auth/src/permissions/lock-grants.ts',
    find: ': !wanted.isPrefix && compareBytes(permission.name, wanted.name) === 0)',
    replace: ': beginsWith(wanted.name, permission.name))',
    killedBy: {
      file: LOCK_GRANTS,
      test: 'a permission for one lock does not cover what begins with its name',
    },
  },
  {
    name: 'whoever-takes-locks-steers-them',
    rule: 'every verb on locks includes read, and no other one (lock-grants.ts)',
    file: 'packages/auth/src/permissions/lock-grants.ts',
    find: "(permission.verb === wanted.verb || wanted.verb === 'read') &&",
    replace: "(permission.verb === wanted.verb || wanted.verb !== 'acquire') &&",
    killedBy: { file: LOCK_GRANTS, test: 'every verb includes read, and no other verb' },
  },
  {
    name: 'permissions-hold-in-all-namespaces',
    rule: 'a permission on locks is for its namespace (lock-grants.ts)',
    file: 'packages/auth/src/permissions/lock-grants.ts',
    find: "(permission.namespace === '' || permission.namespace === wanted.namespace) &&",
    replace: '',
    killedBy: { file: LOCK_GRANTS, test: 'a permission is for its namespace, or for all' },
  },
  {
    name: 'everybody-is-explained',
    rule: 'users without the role root learn only about themselves what they may do (auth-admin.ts)',
    file: 'packages/gateway/src/authorisation/auth-admin.ts',
    find: "this.#check(principal, principal?.name === user ? [{ type: 'anyUser' }] : MANAGES);",
    replace: "this.#check(principal, [{ type: 'anyUser' }]);",
    killedBy: { file: API, test: 'is refused: explain another' },
  },
  {
    name: 'proposals-take-access-away',
    rule: 'what an explanation proposes to grant takes nothing away (explanation.ts EX3)',
    file: 'packages/auth/src/permissions/explanation.ts',
    find: "same === undefined || same.access === access ? access : 'readWrite'",
    replace: 'access',
    killedBy: {
      file: EXPLANATION,
      test: 'another access to keys that the role has contains the one that it has (EX3)',
    },
  },
  {
    name: 'a-part-of-an-access-revokes-all',
    rule: 'to revoke a part of the access to keys is refused (auth-admin.ts)',
    file: 'packages/gateway/src/authorisation/auth-admin.ts',
    find: 'if (had === undefined || had === access) return;',
    replace: 'if (had !== access) return;',
    killedBy: { file: API, test: 'to revoke a part of the access to keys is refused, and takes nothing' },
  },
  {
    name: 'passwords-are-arguments',
    rule: 'no password is an argument of the command line (credentials.ts CC1)',
    file: 'packages/cli/src/commands/credentials.ts',
    find: "if (!user.includes(':')) return;",
    replace: 'return;',
    killedBy: { file: CREDENTIALS, test: 'whose argument has a password, which is not shown (CC1)' },
  },
  {
    name: 'passwords-of-other-users-are-sent',
    rule: 'a variable with the password of another user does not count (credentials.ts CC2)',
    file: 'packages/cli/src/commands/credentials.ts',
    find: 'env(USER) === undefined || env(USER) === user;',
    replace: 'true;',
    killedBy: {
      file: CREDENTIALS,
      test: 'with a password of its own, if a variable has that of another user (CC2)',
    },
  },
];
