/** Rules of locks over HTTP: for each rule, a mutation that breaks the code behind it. */
import { HTTP_KEYS_RULES } from './http-keys-rules.ts';
import type { RuleMutation } from './mutation.ts';

/** [name, the resulting fault, file, find, replace, test] */
type Row = readonly [string, string, string, string, string, string];

const GUARD = 'node/http/request-guard.ts';

const ROWS: readonly Row[] = [
  [
    'http-wait-without-renewals',
    'nobody renews the session of a client that waits (HA1)',
    'http/acquire-calls.ts',
    'this.#schedule(renewal.ttlMs / BEATS_PER_TTL);\n  }\n\n  /** Resolves with a renewal made a moment ago.',
    '}\n\n  /** Resolves with a renewal made a moment ago.',
    'is kept alive while it waits, however long, and answered with a session that was just renewed',
  ],
  [
    'http-hung-up-waiter-stays',
    'who hangs up keeps its place (HA2)',
    'http/acquire-calls.ts',
    'const isTakenBack = await this.#takeBack(request, renewal.ref);',
    'const isTakenBack = false;',
    "'is given up by whoever hangs up', and leaves nothing",
  ],
  [
    'http-undelivered-grant-stays',
    'a grant that nobody took stays (HA2, HE2)',
    'http/acquire-calls.ts',
    'takeBack: () => void this.#takeBack(request, renewal.ref)',
    'takeBack: () => {}',
    'is given back when nobody took the answer',
  ],
  [
    'http-repeated-call-taken-back',
    'a call that may be under way elsewhere is taken back (HA3)',
    'http/acquire-calls.ts',
    'if (request.mayRepeat) return false;\n',
    '',
    'keeps its place in the queue over a lost connection',
  ],
  [
    'http-repeated-call-anew',
    'a late repetition of a call acquires again what was released',
    'http/acquire-calls.ts',
    'ownRequestId(request));',
    'undefined);',
    'is left by a release that knows no more than the token, and is over then',
  ],
  [
    'http-kept-place-told-as-refused',
    'an acquire that could not be taken back is told as refused (HA7)',
    'http/acquire-calls.ts',
    'throw isTakenBack || (',
    'throw true || (',
    'is not told as taken by others when its place could not be given up',
  ],
  [
    'http-overtaken-acquire',
    'an acquire is granted that a release by its token has overtaken (HL2)',
    'http/lock-calls.ts',
    '    await this.#spend(own);\n',
    '',
    'that a release has overtaken is not granted',
  ],
  [
    'http-grant-of-an-old-renewal',
    'a grant is answered with the time of a session that was renewed long ago (HA4)',
    'http/acquire-calls.ts',
    'if (ageMs > ttlMs * FRESH_FRACTION)',
    'if (ageMs > ttlMs)',
    'is kept alive while it waits, however long, and answered with a session that was just renewed',
  ],
  [
    'http-renewal-of-a-lost-lock',
    'a renewal succeeds though the lock was taken away',
    'http/lock-calls.ts',
    'if (current[0] !== true)',
    'if (current.length === 0)',
    'versions are checked together; taking a lock by force ends them',
  ],
  [
    'http-release-keeps-the-session',
    'the session of a lock that was released stays for its TTL',
    'http/lock-calls.ts',
    'if (isOwnSession(owner, lock)) await theRest(this.#calls.close(owner.session));',
    '',
    'is left by a release that knows no more than the token, and is over then',
  ],
  [
    'http-form-of-a-web-page',
    'a body is taken whatever type it says it has (HE1)',
    'node/http/http-endpoint.ts',
    "if (type !== 'application/json' && !isLines) {",
    "if (type === 'text/html') {",
    'a body is JSON by its type, and no other site has sent it',
  ],
  [
    'http-unfinished-bodies-without-bound',
    'bodies that are never finished take all memory (HE1)',
    'node/http/http-endpoint.ts',
    'if (length > SMALL_BODY_BYTES) account.unfinished(length, 0);',
    'if (length > BODY_BYTES_MAX) account.unfinished(length, 0);',
    'of one address have a quarter of the room: the one that began first is ended, and no other is',
  ],
  [
    'http-unfinished-bodies-keep-their-room',
    'a client that hangs up keeps the room of its body (HE1)',
    'node/http/http-endpoint.ts',
    "request.on('close', () => refuse(new ServiceError('CANCELED', 'the client closed the connection')));",
    '',
    'give their room back when their client hangs up',
  ],
  [
    'http-waits-without-bound',
    'as many calls are taken as come (HE3)',
    'node/http/http-endpoint.ts',
    'running + streams.size >= callsMax',
    'callsMax < 0',
    'one call more than there may be is refused at once, and health checks are not',
  ],
  [
    'http-reader-that-does-not-read',
    'who does not read is told on and on (HE4)',
    'lock/lock-event-backpressure.ts',
    'this.#control()?.pause();',
    'this.#paused = false;',
    'of all with a prefix; who does not read for a while is told again from the beginning',
  ],
];

/** Kinds of locks, and barriers. */
const KINDS: readonly Row[] = [
  [
    'http-conversions-not-numbered',
    'a repetition of an upgrade or a downgrade that comes late undoes what was done since',
    'http/acquire-request.ts',
    'return version + ATTEMPT;',
    'return version * 0 + Number.MAX_SAFE_INTEGER;',
    'a repetition that comes late undoes nothing',
  ],
  [
    'http-leave-numbered-as-the-entry',
    'who has left a barrier comes in again by a late repetition of the entry',
    'http/acquire-request.ts',
    'LEAVE_ATTEMPT = ATTEMPT + 1;',
    'LEAVE_ATTEMPT = ATTEMPT;',
    'does not count again who has left, however late a repetition of the entry comes',
  ],
  [
    'http-release-while-it-leaves',
    'a release does not end the wait of one who leaves a barrier',
    'http/lock-calls.ts',
    '      await this.#cancel({ ...how, attempt: LEAVE_ATTEMPT }),\n',
    '',
    'is not waited for any more by whoever releases while it leaves, in a session that goes on',
  ],
  [
    'http-passage-stays',
    'of a passage that nobody can ask for again the session stays (HA5)',
    'http/acquire-calls.ts',
    "if (request.as?.type === 'pass') await this.#takeBack(request, renewal.ref); // HA5",
    '',
    'lets all go who wait when it is lifted, and nothing of them stays',
  ],
  [
    'http-upgrade-taken-back',
    'an upgrade that may be under way elsewhere is given up with its connection (HA6)',
    'http/acquire-request.ts',
    '...{ lock, token, session, mayRepeat: true, waitMs, ...asked },',
    '...{ lock, token, session, mayRepeat: false, waitMs, ...asked },',
    'who hangs up still waits to upgrade, until the call is repeated or a downgrade gives it up',
  ],
];

/** Which callers are accepted. */
const CALLERS: readonly Row[] = [
  [
    'http-target-with-a-host',
    'a request says twice where it goes (RG2)',
    GUARD,
    "if (!target.startsWith('/'))",
    "if (target === '')",
    'the target http://localhost/v1/x is refused, whatever Host says',
  ],
  [
    'http-several-hosts',
    'the first of several Host headers counts (RG2)',
    GUARD,
    'if (hosts.length > 1)',
    'if (hosts.length > 9)',
    'a missing Host is refused in both versions, several are refused, also when they agree',
  ],
  [
    'http-host-with-a-user',
    'what stands before an @ in Host is passed over (RG1)',
    GUARD,
    'const HOST = /^(?:',
    'const HOST = /^(?:.*@)?(?:',
    "'a user in front of an allowed name' is refused on every path",
  ],
  [
    'http-rebound-name',
    'a page reaches a node by a name of its own (RG1)',
    GUARD,
    "return name === 'localhost' ||",
    "return name !== '' ||",
    "'a name that a rebinding attacker chose' is refused on every path",
  ],
  [
    'http-same-site',
    'a page of another port of localhost is let in (RG3)',
    GUARD,
    "site !== 'same-origin' && site !== 'none'",
    "site !== 'same-origin' && site !== 'same-site' && site !== 'none'",
    'Sec-Fetch-Site: same-site is refused on every path',
  ],
  [
    'http-page-of-another-site',
    'a page of another site is let in where its browser says no more than its origin (RG4)',
    GUARD,
    'if (!isForeign && isOwnOrigin) return undefined;',
    'if (!isForeign) return undefined;',
    "Origin: 'http://evil.example' is answered with 403",
  ],
];

const COOKIE = 'http/access/session-cookie.ts';

/** Log-ins of browsers, and what only root may see. */
const ACCESS: readonly Row[] = [
  [
    'http-cookie-for-scripts',
    'scripts can read the cookie of a log-in (SC1)',
    COOKIE,
    '; HttpOnly',
    '',
    'names the user, and puts the token into a cookie that scripts and other sites cannot use (SC1)',
  ],
  [
    'http-cookie-for-other-sites',
    'other sites send the cookie of a log-in (SC1)',
    COOKIE,
    '; SameSite=Strict',
    '',
    'names the user, and puts the token into a cookie that scripts and other sites cannot use (SC1)',
  ],
  [
    'http-cookie-without-tls',
    'a cookie that came over TLS is sent without (SC1)',
    COOKIE,
    "isSecure ? '; Secure' : ''",
    "''",
    'by a proxy that ends TLS sets a cookie for TLS only',
  ],
  [
    'http-token-in-the-answer',
    'scripts can read the token in the answer to a log-in (SC1)',
    'http/access/access-routes.ts',
    'return { token, user: { user,',
    'return { token, user: { user, token,',
    'names the user, and puts the token into a cookie that scripts and other sites cannot use (SC1)',
  ],
  [
    'http-cookie-without-csrf',
    'a change with the cookie needs no header (SC3)',
    COOKIE,
    'if (SAFE.includes(method) || header === CSRF_VALUE) return;',
    'if (SAFE.includes(method) || header !== undefined) return;',
    "needs the header against requests of other sites: 'PUT' '/v1/users/bob' (SC3)",
  ],
  [
    'http-delete-without-csrf',
    'a DELETE with the cookie needs no header (SC3)',
    COOKIE,
    "['GET', 'HEAD']",
    "['GET', 'HEAD', 'DELETE']",
    "needs the header against requests of other sites: 'DELETE' '/v1/users/ann' (SC3)",
  ],
  [
    'http-log-out-without-csrf',
    'other sites can log a browser out (SC3)',
    'node/http/http-endpoint.ts',
    '  sentTokens(request);\n  return',
    '  return',
    "needs the header against requests of other sites: 'POST' '/v1/log-out' (SC3)",
  ],
  [
    'http-cookie-before-the-header',
    'the cookie counts before the header Authorization (SC2)',
    'node/http/http-caller.ts',
    'headers.authorization === undefined ? cookieTokens(headers.cookie) : []',
    'cookieTokens(headers.cookie)',
    'says who asks, and the header Authorization counts before it (SC2)',
  ],
  [
    'http-two-cookies',
    'the first of several cookies counts',
    COOKIE,
    'if (tokens.length <= 1)',
    'if (tokens.length <= 9)',
    'that is not valid is refused and cleared; one that is there twice is refused',
  ],
];

const AUDIT: readonly Row[] = [
  [
    'http-audit-for-everybody',
    'everybody may read the audit log',
    'http/access/audit-routes.ts',
    "backend.check(principal, AUDITS, 'readAudit');",
    '',
    'to everybody else, of this node and of others',
  ],
];

const USERS: readonly Row[] = [
  [
    'http-user-kept-by-anybody',
    'a change of users that changes nothing needs no permission (UR1)',
    'authorisation/auth-admin.ts',
    'this.#recorded(call, what, async () => this.#check(call.principal));',
    'this.#recorded(call, what, async () => {});',
    "'PUT' '/v1/roles/shop' {}: a user without the role root, and nobody",
  ],
];

export const HTTP_RULES: readonly RuleMutation[] = [
  ...HTTP_KEYS_RULES,
  ...ACCESS.map((row) => mutation(row, 'access')),
  ...AUDIT.map((row) => mutation(row, 'audit')),
  ...USERS.map((row) => mutation(row, 'users')),
  ...ROWS.map((row) => mutation(row, row[2].startsWith('node/') ? 'endpoint' : 'locks')),
  ...KINDS.map((row) => mutation(row, 'kinds')),
  ...CALLERS.map((row) => mutation(row, 'callers')),
];

function mutation(
  [name, rule, file, find, replace, test]: Row,
  tests: 'access' | 'audit' | 'callers' | 'endpoint' | 'kinds' | 'locks' | 'users',
): RuleMutation {
  return {
    ...{ name, rule, find, replace, file: `packages/gateway/src/${file}` },
    killedBy: { file: `test/http/${tests}.test.ts`, test },
  };
}
