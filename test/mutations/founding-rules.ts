/** Founding with authentication, the audit log, and who may say what of nodes: each rule broken, and its test. */
import type { RuleMutation } from './mutation.ts';

const FOUNDING = 'packages/master/src/ranges/founding.ts';
const FOUNDING_TEST = 'packages/master/src/ranges/founding.test.ts';
const PLAN = 'packages/cli/src/node/cluster/founding.ts';
const PLAN_TEST = 'packages/cli/src/node/cluster/founding.test.ts';
const EXPOSURE = 'packages/cli/src/node/cluster/exposure-check.ts';
const EXPOSURE_TEST = 'packages/cli/src/node/cluster/exposure-check.test.ts';
const AUDITED = 'packages/gateway/src/authorisation/audited-calls.ts';
const BACKEND_TEST = 'packages/gateway/src/authorisation/authorised-backend.test.ts';
const LOG = 'packages/auth/src/audit/audit-log.ts';
const LOG_TEST = 'packages/auth/src/audit/audit-log.test.ts';
const AUTHENTICATOR = 'packages/auth/src/authenticator.ts';
const AUTHENTICATOR_TEST = 'packages/auth/src/authenticator.test.ts';

export const FOUNDING_RULES: readonly RuleMutation[] = [
  {
    name: 'ranges-before-authentication',
    rule: 'no range exists before authentication is on (founding.ts FO1)',
    file: FOUNDING,
    find: "if (plan.kind === 'open' || state.auth.enabled) return true;",
    replace: "if (plan.kind === 'open' || state.auth.enabled || this.#proposing) return true;",
    killedBy: { file: FOUNDING_TEST, test: 'is founded by one proposal at a time' },
  },
  {
    name: 'founders-need-not-agree',
    rule: 'founders that plan otherwise stop the founding (founding.ts FO2)',
    file: FOUNDING,
    find: 'if (this.#isStopped(this.#disagreement())) return false;',
    replace: '',
    killedBy: {
      file: FOUNDING_TEST,
      test: 'is not founded while founders plan otherwise, and says who does, once (FO2)',
    },
  },
  {
    name: 'founded-again',
    rule: 'a cluster with ranges is not founded again (founding.ts FO4)',
    file: 'packages/master/src/metadata/master-state.ts',
    find: '        this.#checkNoRanges();\n        this.#auth.found(command);',
    replace: '        this.#auth.found(command);',
    killedBy: { file: FOUNDING_TEST, test: 'with ranges is not founded again (FO4)' },
  },
  {
    name: 'a-second-first-root',
    rule: 'the first founder that proposes decides about root (founding.ts FO3)',
    file: 'packages/auth/src/state/auth-state.ts',
    find: 'if (this.#image.revision !== FIRST_AUTH.revision) return;',
    replace: '',
    killedBy: {
      file: FOUNDING_TEST,
      test: 'is founded with the password of one founder, though each has another hash (FO3)',
    },
  },
  {
    name: 'founded-open-beyond-loopback',
    rule: 'beyond loopback a cluster is founded with authentication (cluster/founding.ts FN1)',
    file: PLAN,
    find: "exposedAddress(options) === undefined || insecure.includes('anonymous')",
    replace: 'exposedAddress(options) === undefined || insecure.length >= 0',
    killedBy: { file: PLAN_TEST, test: 'with authentication beyond loopback, and without on loopback (FN1)' },
  },
  {
    name: 'any-password-founds',
    rule: 'a password that cannot be used stops the start (cluster/founding.ts FN3)',
    file: PLAN,
    find: '    checkPassword(password);',
    replace: '',
    killedBy: { file: PLAN_TEST, test: "not with a file that 'is empty' (FN3)" },
  },
  {
    name: 'joins-an-open-cluster',
    rule: 'a node beyond loopback does not join a cluster without authentication (exposure-check.ts EX1)',
    file: EXPOSURE,
    find: 'if (exposed !== undefined && isFirst && isNew && options.join.length > 0 && known.isOff && !isIntended) {',
    replace:
      'if (exposed !== undefined && isFirst && isNew && options.join.length > 9 && known.isOff && !isIntended) {',
    killedBy: {
      file: EXPOSURE_TEST,
      test: 'a node does not join a cluster without authentication beyond loopback, unless it is allowed (EX1)',
    },
  },
  {
    name: 'auth-off-stops-nodes',
    rule: 'a node that was in its cluster goes on when authentication is switched off (exposure-check.ts EX2)',
    file: EXPOSURE,
    find: 'const isFirst = this.#isFirst;',
    replace: 'const isFirst = true;',
    killedBy: {
      file: EXPOSURE_TEST,
      test: 'a node goes on when authentication is switched off, and says so until it is on again (EX2)',
    },
  },
  {
    name: 'heartbeats-of-others',
    rule: 'a heartbeat counts only for its sender (master-service.ts SV5)',
    file: 'packages/master/src/master-service.ts',
    find: 'this.#senderRefusal(heartbeat, caller) ?? ',
    replace: '',
    killedBy: {
      file: 'packages/master/src/master.test.ts',
      test: 'takes a heartbeat only from the node that it is about (SV5)',
    },
  },
  {
    name: 'refusals-are-not-recorded',
    rule: 'every refusal is recorded (audited-calls.ts AC1)',
    file: AUDITED,
    find: 'steered.length > 0 || isRefusal(error)',
    replace: 'steered.length > 0',
    killedBy: { file: BACKEND_TEST, test: 'has every refusal, with its caller, and of which need (AC1)' },
  },
  {
    name: 'steering-is-not-recorded',
    rule: 'steering of locks is recorded (audited-calls.ts AC1)',
    file: AUDITED,
    find: "(need.type === 'lock' || need.type === 'locks') && need.verb === 'steer'",
    replace: "need.type === 'locks' && need.verb === 'steer'",
    killedBy: {
      file: BACKEND_TEST,
      test: 'has what steers locks or administers, with its outcome, also while authentication is off (AC1)',
    },
  },
  {
    name: 'ends-of-sessions-are-not-recorded',
    rule: 'to end or change a session of another user is recorded (audited-calls.ts AC4)',
    file: AUDITED,
    find: "return need.what === 'end' || need.what === 'change';",
    replace: "return need.what === 'change';",
    killedBy: {
      file: BACKEND_TEST,
      test: 'has the end of a session of another user, by boss, with its owner (AC1, AC4)',
    },
  },
  {
    name: 'root-ends-sessions-unseen',
    rule: 'an audit log shows whose session root ends (decisions.ts DE3)',
    file: 'packages/gateway/src/authorisation/decisions.ts',
    find: 'return isAudited === true && ',
    replace: 'return false && ',
    killedBy: {
      file: BACKEND_TEST,
      test: 'has the end of a session of another user, by root, with its owner (AC1, AC4)',
    },
  },
  {
    name: 'questions-without-an-audit-log',
    rule: 'without an audit log, root costs no question about a lease (audited-calls.ts AC3)',
    file: 'packages/gateway/src/authorisation/decisions.ts',
    find: 'return isAudited === true && ',
    replace: 'return ',
    killedBy: { file: BACKEND_TEST, test: 'costs no question about a lease without an audit log (AC3)' },
  },
  {
    name: 'later-decisions-are-not-recorded',
    rule: 'a session of another user is recorded by whichever decision found it (audited-calls.ts AC4)',
    file: 'packages/gateway/src/authorisation/request-clearance.ts',
    find: 'this.ofLeases = leases.needs;',
    replace: '',
    killedBy: {
      file: BACKEND_TEST,
      test: 'has the end of a session of another user that is decided about only when a range knows a newer revision (AC4)',
    },
  },
  {
    name: 'own-sessions-are-recorded',
    rule: "the end of one's own session is a write (audited-calls.ts AC2)",
    file: AUDITED,
    find: 'need.owner === undefined || need.owner === principal?.name',
    replace: 'need.owner === undefined',
    killedBy: {
      file: BACKEND_TEST,
      test: "has neither the end of one's own session nor of a lease of plain keys, which are writes (AC2, AC4)",
    },
  },
  {
    name: 'writes-are-always-recorded',
    rule: 'writes that succeed are recorded only on request (audited-calls.ts AC2)',
    file: AUDITED,
    find: 'error === undefined && this.#audit.writes',
    replace: 'error === undefined',
    killedBy: {
      file: BACKEND_TEST,
      test: 'has writes that succeed only if they are asked for, and never reads that are allowed (AC2)',
    },
  },
  {
    name: 'log-ins-are-not-recorded',
    rule: 'each log-in is recorded (authenticator.ts AU7)',
    file: AUTHENTICATOR,
    find: "this.#audit.record({ action: 'logIn', decision: 'allowed', principal });",
    replace: '',
    killedBy: {
      file: AUTHENTICATOR_TEST,
      test: 'each log-in and each token that is refused is recorded once, with its caller and without its secrets (AU7)',
    },
  },
  {
    name: 'refused-log-ins-are-not-recorded',
    rule: 'each log-in that is refused is recorded (authenticator.ts AU7)',
    file: AUTHENTICATOR,
    find: "this.#audit.record({ action, decision: 'failed', principal, reason: error.message });",
    replace: '',
    killedBy: {
      file: AUTHENTICATOR_TEST,
      test: 'each log-in and each token that is refused is recorded once, with its caller and without its secrets (AU7)',
    },
  },
  {
    name: 'audit-lines-without-bound',
    rule: 'lines that wait are bounded, and those beyond are counted (audit-log.ts AL2)',
    file: LOG,
    find: 'if (this.#queueBytes + bytes > QUEUE_BYTES_MAX) {',
    replace: 'if (bytes > QUEUE_BYTES_MAX) {',
    killedBy: {
      file: LOG_TEST,
      test: 'a disk that does not respond holds up nobody; what finds no room is counted, and said in its place (AL1, AL2)',
    },
  },
  {
    name: 'failed-audit-writes-are-lost',
    rule: 'a write that failed is repeated (audit-log.ts AL4)',
    file: LOG,
    find: 'this.#waiting.unshift(text);',
    replace: '',
    killedBy: { file: LOG_TEST, test: 'a write that failed is repeated, in order, and the failure is said once (AL4)' },
  },
  {
    name: 'audit-lines-act-on-terminals',
    rule: 'a line has nothing that a terminal acts upon (audit-log.ts AL5)',
    file: LOG,
    find: 'escapeHidden(JSON.stringify(line))',
    replace: 'JSON.stringify(line)',
    killedBy: {
      file: LOG_TEST,
      test: 'names of others cannot forge a line, act on a terminal, or make a line long (AL5)',
    },
  },
  {
    name: 'audit-log-for-everybody',
    rule: 'the audit log is for its own user (audit-file.ts)',
    file: 'packages/cli/src/node/files/audit-file.ts',
    find: "return open(path, 'a', OWN_FILE_MODE);",
    replace: "return open(path, 'a');",
    killedBy: {
      file: 'packages/cli/src/node/files/audit-file.test.ts',
      test: 'the file is appended to, is for its own user only, and is opened again when it was moved',
    },
  },
];
