/** How clients log in: each rule broken, and the test that notices. */
import type { RuleMutation } from './mutation.ts';

export const LOG_IN_RULES: readonly RuleMutation[] = [
  {
    name: 'requests-before-the-log-in',
    rule: 'only calls of the guard leave before it admits the link (link-guard.ts LG1)',
    file: 'packages/protocol/src/rpc/admission.ts',
    find: 'if (this.#guard !== undefined) this.#hold(1);',
    replace: '',
    killedBy: {
      file: 'packages/protocol/src/rpc/link-guard.test.ts',
      test: 'only calls of the guard leave before it admits the link, and the others then leave in order (LG1)',
    },
  },
  {
    name: 'late-refusals-hold-the-link',
    rule: 'a refusal of a call that left before the link was last held does not count (link-guard.ts LG2)',
    file: 'packages/protocol/src/rpc/admission.ts',
    find: ' || id < this.#heldFromId) return;',
    replace: ') return;',
    killedBy: {
      file: 'packages/protocol/src/rpc/link-guard.test.ts',
      test: 'a late refusal does not count when the link is admitted again by then (LG2)',
    },
  },
  {
    name: 'a-log-in-for-each-connection',
    rule: 'a client has one log-in by password at a time (log-ins.ts LI1)',
    file: 'packages/client/src/transport/log-ins.ts',
    find: 'if (this.#obtaining === undefined) return await',
    replace: 'if (this.#known === undefined || true) return await',
    killedBy: {
      file: 'packages/client/src/transport/log-ins.test.ts',
      test: 'two connections share one log-in by password (LI1), and a further one uses the token (LI2)',
    },
  },
  {
    name: 'log-ins-never-renewed',
    rule: 'a connection logs in again before its token ends (log-ins.ts LI3)',
    file: 'packages/client/src/transport/log-ins.ts',
    find: 'const usableUntilMs = fresh ? known.renewAtMs : known.endsMs - SPARE_MS;',
    replace: 'const usableUntilMs = fresh ? Number.POSITIVE_INFINITY : known.endsMs - SPARE_MS;',
    killedBy: {
      file: 'packages/client/src/transport/log-ins.test.ts',
      test: 'a function for tokens is called at the beginning, before a token ends, and when one is refused',
    },
  },
  {
    name: 'refused-tokens-are-kept',
    rule: 'a token that a gateway refuses is dropped (log-ins.ts LI4)',
    file: 'packages/client/src/transport/log-ins.ts',
    find: 'if (refused !== undefined && this.#known?.token === refused.token) this.#known = undefined;',
    replace: '',
    killedBy: {
      file: 'packages/client/src/transport/log-ins.test.ts',
      test: 'a function for tokens is called at the beginning, before a token ends, and when one is refused',
    },
  },
  {
    name: 'wrong-passwords-tried-all-the-time',
    rule: 'after a refusal, requests end without a log-in for a pause (log-ins.ts LI5)',
    file: 'packages/client/src/transport/log-ins.ts',
    find: 'if (this.#refusal !== undefined && this.#ports.clock.monotonicMs() < this.#refusedUntilMs) throw this.#refusal;',
    replace: '',
    killedBy: {
      file: 'packages/client/src/transport/log-ins.test.ts',
      test: 'a wrong password ends what waits, and costs the cluster few log-ins (LI5)',
    },
  },
  {
    name: 'busy-gateways-refuse-credentials',
    rule: 'a log-in that fails otherwise says nothing about the credentials (log-ins.ts LI6)',
    file: 'packages/client/src/transport/log-ins.ts',
    find: 'if (!FINAL.has(error.code)) return unavailable(error); // LI6',
    replace: '',
    killedBy: {
      file: 'packages/client/src/transport/log-ins.test.ts',
      test: 'what a busy gateway cannot verify, another one does (LI6)',
    },
  },
  {
    name: 'retries-look-like-first-attempts',
    rule: 'an attempt says so if the answer to an earlier one was lost (requester.ts R4)',
    file: 'packages/client/src/transport/operation.ts',
    find: 'again: this.maybeApplied ? true : undefined, // R4',
    replace: 'again: undefined,',
    killedBy: {
      file: 'packages/client/src/transport/operation.test.ts',
      test: 'a command says that it may have been applied before, once an answer to it was lost (R4)',
    },
  },
  {
    name: 'retries-are-not-passed-on',
    rule: 'a gateway learns from its client that a command was sent before (authorised-backend.ts AB3)',
    file: 'packages/gateway/src/pipe/pipe-server.ts',
    find: 'waitMs, again, principal };',
    replace: 'waitMs, again: undefined, principal };',
    killedBy: {
      file: 'packages/gateway/src/pipe/pipe-server.test.ts',
      test: 'a command that says true of earlier attempts is passed on with that',
    },
  },
  {
    name: 'passwords-in-plain-text',
    rule: 'credentials leave in plain text only to loopback (plain-text.ts)',
    file: 'packages/client/src/node/plain-text.ts',
    find: '|| options.allowPlainText) return',
    replace: '|| options.allowPlainText !== false) return',
    killedBy: {
      file: 'packages/client/src/transport/credentials.test.ts',
      test: "a password to '10.0.0.1:1' is allowed: false",
    },
  },
  {
    name: 'keys-of-other-certificates',
    rule: 'a certificate and a key that do not fit together are not used (tls-files.ts TF2)',
    file: 'packages/client/src/node/tls-files.ts',
    find: 'if (cert === undefined || key === undefined || this.#isCurrent(cert, key)) return found;',
    replace: 'return found;',
    killedBy: {
      file: 'packages/cli/test/tls/client-tls.test.ts',
      test: 'while certificate and key do not fit, the last good ones are used, and that is logged once (TF2)',
    },
  },
  {
    name: 'cut-off-nodes-call-passwords-wrong',
    rule: 'a node that is cut off from the masters does not know whether a password is wrong (authenticator.ts AU6)',
    file: 'packages/auth/src/authenticator.ts',
    find: 'void this.#known.authority; // AU6: throws `UNAVAILABLE`.',
    replace: '',
    killedBy: {
      file: 'packages/auth/src/authenticator.test.ts',
      test: 'users are known, and log in, while the masters are lost (AU6)',
    },
  },
];
