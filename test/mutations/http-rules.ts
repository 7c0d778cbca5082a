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

export const HTTP_RULES: readonly RuleMutation[] = [
  ...HTTP_KEYS_RULES,
  ...ROWS.map((row) => mutation(row, row[2].startsWith('node/') ? 'endpoint' : 'locks')),
  ...KINDS.map((row) => mutation(row, 'kinds')),
  ...CALLERS.map((row) => mutation(row, 'callers')),
];

function mutation(
  [name, rule, file, find, replace, test]: Row,
  tests: 'callers' | 'endpoint' | 'kinds' | 'locks',
): RuleMutation {
  return {
    ...{ name, rule, find, replace, file: `packages/gateway/src/${file}` },
    killedBy: { file: `test/http/${tests}.test.ts`, test },
  };
}
