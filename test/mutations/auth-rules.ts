/** Who may do what: each check taken out, and its test. */
import type { RuleMutation } from './mutation.ts';

const BACKEND = 'packages/gateway/src/authorisation/authorised-backend.test.ts';
const KNOWN = 'packages/auth/src/known-auth.test.ts';
const AUTHENTICATOR = 'packages/auth/src/authenticator.test.ts';
const OWNERS = 'packages/dataserver/src/state/leases/lease-owners.property.test.ts';
const SESSIONS = 'packages/dataserver/src/range/leases/session-queries.test.ts';
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
    find: 'known.lastKnown?.check(principal, needs);',
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
    name: 'refused-watches-are-created',
    rule: 'a caller who may not watch gets the one message of etcd (watch-stream.ts W7)',
    file: 'packages/gateway/src/etcd/watch-stream.ts',
    find: 'this.#endEarly(watch, refusal, 0, true);',
    replace: 'this.#endEarly(watch, refusal, 0, false);',
    killedBy: {
      file: 'packages/gateway/src/etcd/watch-stream.test.ts',
      test: 'refuses a caller who may not watch as created and canceled at once, with no id and the text of etcd',
    },
  },
  {
    name: 'refused-commands-are-sent',
    rule: 'a request that is not allowed never reaches a range (authorised-backend.ts AB1)',
    file: 'packages/gateway/src/authorisation/decisions.ts',
    find: 'authority.check(asking.principal, asking.needs.filter(isPlain));',
    replace: 'authority.check(asking.principal, []);',
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
    find: 'const refusal = refusalOf(() => this.check(asking.principal, needs));',
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
    find: 'if (token !== undefined) return this.#byToken(token, door, address); // AU1',
    replace: 'if (token !== undefined && certificateName === undefined) return this.#byToken(token, door, address);',
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
    name: 'open-before-it-is-founded',
    rule: 'nodes learn of no users before a cluster with authentication is founded (founding.ts FO5)',
    file: 'packages/master/src/ranges/founding.ts',
    find: "return plan.kind === 'open' || state.auth.enabled || state.ranges().length > 0;",
    replace: 'return true;',
    killedBy: {
      file: 'packages/master/src/ranges/founding.test.ts',
      test: 'tells nobody that authentication is off, and takes no users, before it is founded (FO5)',
    },
  },
  {
    name: 'users-before-it-is-founded',
    rule: 'nobody changes users before the cluster is founded (founding.ts FO5)',
    file: 'packages/master/src/metadata/master-state.ts',
    find: 'this.#checkFounded();',
    replace: '',
    killedBy: {
      file: 'packages/master/src/ranges/founding.test.ts',
      test: 'tells nobody that authentication is off, and takes no users, before it is founded (FO5)',
    },
  },
  {
    name: 'sessions-belong-to-whom-they-say',
    rule: 'a session that begins belongs to its caller (authorised-backend.ts AB5)',
    file: 'packages/gateway/src/authorisation/authorised-backend.ts',
    find: 'const owner = principal?.name ?? NO_OWNER;',
    replace: 'const { owner } = grant;',
    killedBy: {
      file: BACKEND,
      test: 'that begins belongs to its caller, whatever its request says; a lease of plain keys to nobody (AB5)',
    },
  },
  {
    name: 'strangers-ask-for-nothing',
    rule: 'a request that needs nothing still needs a user (authority.ts D2)',
    file: 'packages/auth/src/permissions/authority.ts',
    find: 'of needs.length === 0 ? NEEDS_NOTHING : needs)',
    replace: 'of needs)',
    killedBy: {
      file: 'packages/auth/src/permissions/authority.test.ts',
      test: 'a request that needs nothing still needs a user (D2)',
    },
  },
  {
    name: 'chosen-request-ids-are-for-all',
    rule: 'a chosen request id stands for a command of its user only (authorised-backend.ts AB6)',
    file: 'packages/gateway/src/authorisation/authorised-backend.ts',
    find: 'given.isChosenId === true ? this.#bound(given) : given',
    replace: 'given',
    killedBy: {
      file: BACKEND,
      test: 'whose id its client has chosen shares it with no other user, nor with ids that others send (AB6)',
    },
  },
  {
    name: 'chosen-request-ids-can-be-computed',
    rule: 'a chosen request id follows from a key that only nodes have (authorised-backend.ts AB6)',
    file: 'packages/gateway/src/authorisation/chosen-request-id.ts',
    find: "createHmac('sha256', key)",
    replace: "createHmac('sha256', '')",
    killedBy: {
      file: BACKEND,
      test: 'whose id its client has chosen shares it with no other user, nor with ids that others send (AB6)',
    },
  },
  {
    name: 'sessions-tell-everybody-of-themselves',
    rule: 'what a client says of its session is for who may see the session (authorised-backend.ts AB7)',
    file: 'packages/gateway/src/authorisation/authorised-backend.ts',
    find: 'lease: { ...rest, attributes: {} }',
    replace: 'lease',
    killedBy: {
      file: BACKEND,
      test: 'is what a client says of its session only for who may see the session (AB7)',
    },
  },
  {
    name: 'keys-that-were-attached-meanwhile',
    rule: 'the keys of a lease in an answer are decided about (authorised-backend.ts AB7)',
    file: 'packages/gateway/src/authorisation/authorised-backend.ts',
    find: 'if (refusal !== undefined) return answer(refusal, undefined);',
    replace: '',
    killedBy: {
      file: BACKEND,
      test: 'is refused if a key was attached meanwhile that its caller may not read (AB7)',
    },
  },
  {
    name: 'audit-log-shows-secret-request-ids',
    rule: 'request ids of the Pipe are not in the audit log (audited-calls.ts AC5)',
    file: 'packages/gateway/src/authorisation/audited-calls.ts',
    find: "principal?.door === 'pipe' ? undefined : requestId",
    replace: 'requestId',
    killedBy: {
      file: BACKEND,
      test: 'shows the request ids that clients choose, and no others (AC5)',
    },
  },
  {
    name: 'one-address-locks-a-user-out',
    rule: 'log-ins of one address leave room for the user that they name (password-hasher.ts PH2)',
    file: 'packages/auth/src/credentials/password-hasher.ts',
    find: 'if ((this.#ofAddress.get(network) ?? 0) >= ofAddressMax)',
    replace: 'if ((this.#ofAddress.get(network) ?? 0) >= ofUserMax)',
    killedBy: {
      file: 'packages/auth/src/credentials/password-hasher.test.ts',
      test: 'a flood for one user from one address, or one network, leaves room for that user (PH2)',
    },
  },
  {
    name: 'long-names-take-turns',
    rule: 'names and passwords that nobody has take no turn (password-hasher.ts PH4)',
    file: 'packages/auth/src/credentials/password-hasher.ts',
    find: 'if (Buffer.byteLength(user) > AUTH_LIMITS.nameBytesMax || isTooLong(password)) return false; // PH4',
    replace: '',
    killedBy: {
      file: 'packages/auth/src/credentials/password-hasher.test.ts',
      test: 'names and passwords that nobody has are wrong at once, however many there are (PH4)',
    },
  },
  {
    name: 'audit-lines-as-long-as-names',
    rule: 'nothing that a caller sends makes a line of the audit log long (audit-log.ts AL5)',
    file: 'packages/auth/src/audit/audit-line.ts',
    find: 'principal: cut(name)',
    replace: 'principal: name',
    killedBy: {
      file: 'packages/auth/src/audit/audit-log.test.ts',
      test: 'names of others cannot forge a line, act on a terminal, or make a line long (AL5)',
    },
  },
  {
    name: 'everybody-owns-sessions',
    rule: 'what only its owner may do with a session, nobody else does (authority.ts D5)',
    file: 'packages/auth/src/permissions/authority.ts',
    find: 'return need.owner === user || (need.orSteer && steersAll(locks)); // D5',
    replace: 'return true;',
    killedBy: {
      file: BACKEND,
      test: 'is used, changed, renewed and ended by its owner, and by no other user who may acquire locks (OW2)',
    },
  },
  {
    name: 'steering-is-using',
    rule: 'who may steer all locks uses no session of others (lease-needs.ts OW2)',
    file: 'packages/gateway/src/authorisation/lease-needs.ts',
    find: "return [owned(need.use, need.use === 'show')];",
    replace: 'return [owned(need.use, true)];',
    killedBy: {
      file: BACKEND,
      test: 'is ended and shown by who may steer all locks, and nothing else; its keys must be his to write (OW2)',
    },
  },
  {
    name: 'ended-keys-are-free',
    rule: 'who ends a session of others may write its keys (lease-needs.ts OW2)',
    file: 'packages/gateway/src/authorisation/lease-needs.ts',
    find: "return [owned('end', true), ...keysNeeds('write', keys)];",
    replace: "return [owned('end', true)];",
    killedBy: {
      file: BACKEND,
      test: 'is ended and shown by who may steer all locks, and nothing else; its keys must be his to write (OW2)',
    },
  },
  {
    name: 'unknown-sessions-are-used',
    rule: 'a session that its home does not know is not used (lease-needs.ts OW3)',
    file: 'packages/gateway/src/authorisation/lease-needs.ts',
    find: "if (need.use === 'use') throw",
    replace: 'if (false) throw',
    killedBy: {
      file: BACKEND,
      test: 'that its home does not know is not used (OW3)',
    },
  },
  {
    name: 'any-incarnation-is-ended',
    rule: 'a request that names no incarnation ends the one that was decided about (lease-needs.ts OW4)',
    file: 'packages/gateway/src/authorisation/lease-needs.ts',
    find: 'ends = lease.incarnation; // OW4',
    replace: 'ends = 0;',
    killedBy: {
      file: BACKEND,
      test: 'is ended in the incarnation that was decided about, if the request names none (OW4)',
    },
  },
  {
    name: 'leases-of-keys-lock',
    rule: 'a lease of plain keys is not used for locks (lease-needs.ts OW5)',
    file: 'packages/auth/src/permissions/authority.ts',
    find: `    case 'owner':
      return need.owner === user ||`,
    replace: `    case 'owner':
      return need.owner === undefined || need.owner === user ||`,
    killedBy: {
      file: BACKEND,
      test: 'is none if it is a lease of plain keys: its keys decide, and locks are not taken with it (OW5)',
    },
  },
  {
    name: 'owners-are-remembered-by-id',
    rule: 'an owner is that of an id with its incarnation (lease-needs.ts OW1)',
    file: 'packages/gateway/src/authorisation/lease-needs.ts',
    find: ' || known.incarnation !== need.incarnation) return undefined;',
    replace: ') return undefined;',
    killedBy: {
      file: BACKEND,
      test: 'is asked about once: its owner never changes (OW1)',
    },
  },
  {
    name: 'old-passwords-go-on',
    rule: 'who logged in with an earlier password may do nothing (authority.ts D6)',
    file: 'packages/auth/src/permissions/authority.ts',
    find: 'if (this.#image.enabled) this.#checkVersion(principal);',
    replace: '',
    killedBy: {
      file: BACKEND,
      test: 'is no longer renewed or used once the password of its user has changed, also by its open streams',
    },
  },
  {
    name: 'awaited-queries-outlive-permissions',
    rule: 'queries that wait end when they are no longer allowed (authorised-backend.ts AB4)',
    file: 'packages/gateway/src/authorisation/authorised-backend.ts',
    find: 'if (isAwaited(query)) return this.#await(query, options, done);',
    replace: '',
    killedBy: {
      file: BACKEND,
      test: 'is no longer renewed or used once the password of its user has changed, also by its open streams',
    },
  },
  {
    name: 'wrong-credentials-while-off',
    rule: 'wrong credentials are not refused while authentication is off (authenticator.ts AU2)',
    file: 'packages/auth/src/authenticator.ts',
    find: 'return this.#unlessRefused(() => this.#identified(credentials)) ?? this.#nobody(door, address); // AU2',
    replace: 'return this.#identified(credentials);',
    killedBy: {
      file: AUTHENTICATOR,
      test: 'while authentication is off, right credentials name the caller, and wrong ones are not refused (AU2)',
    },
  },
  {
    name: 'grants-forget-owners',
    rule: 'the owner of a lease is that of its grant (leases.ts S6)',
    file: 'packages/dataserver/src/state/leases/lease-commands.ts',
    find: 'const whose = owner === undefined ? {} : { owner };',
    replace: 'const whose = {};',
    killedBy: {
      file: OWNERS,
      test: 'changes, checkpoints, spans, restarts, splits and merges keep the owner of each lease (S6)',
    },
  },
  {
    name: 'rows-forget-owners',
    rule: 'the owner of a lease never changes (leases.ts S6)',
    file: 'packages/dataserver/src/state/leases/leases.ts',
    find: '{ 1: 3, 2: 5, 3: 7, 4: 8, 5: 9 },',
    replace: '{ 1: 3, 2: 5, 3: 7, 4: 8 },',
    killedBy: {
      file: OWNERS,
      test: 'changes, checkpoints, spans, restarts, splits and merges keep the owner of each lease (S6)',
    },
  },
  {
    name: 'lists-are-of-all',
    rule: 'a list of the sessions of one user has no others (session-queries.ts)',
    file: 'packages/dataserver/src/range/leases/session-queries.ts',
    find: '(query.owner === undefined || query.owner === owner) &&',
    replace: '',
    killedBy: {
      file: SESSIONS,
      test: 'are found by their owners; leases of plain keys have none',
    },
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
    name: 'acquire-includes-steer',
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
