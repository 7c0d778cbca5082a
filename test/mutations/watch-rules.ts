import type { RuleMutation } from './mutation.ts';

/**
 * The promises of watches about progress: for each rule, a mutation that breaks the code behind it and that a unit test
 * notices.
 */
export const PROGRESS_RULES: readonly RuleMutation[] = [
  {
    name: 'progress-that-waits-for-no-create',
    rule: 'progress of a stream waits for watches that are asked for before the answer (watch-progress.ts P1)',
    file: 'packages/gateway/src/etcd/watch-progress.ts',
    find: '    if (!this.#inFlight) return;\n    watch.owes = true;',
    replace: '    return;\n    watch.owes = true;',
    killedBy: {
      file: 'packages/gateway/src/etcd/watch-progress.test.ts',
      test: 'waits for watches that are asked for before it is answered, too (P1)',
    },
  },
  {
    name: 'progress-by-an-earlier-question',
    rule: 'an answer to a question that was asked before the request is none to it (watch-progress.ts P2)',
    file: 'packages/gateway/src/etcd/watch-progress.ts',
    find: '    watch.askAgain = true;\n    return;',
    replace: '    return;',
    killedBy: {
      file: 'packages/gateway/src/etcd/watch-progress.test.ts',
      test: 'takes no answer to a question that was asked before it came (P2)',
    },
  },
  {
    name: 'progress-before-the-first-revision',
    rule: 'a watch of the future gets no progress from before its first revision (watch-progress.ts P4)',
    file: 'packages/gateway/src/etcd/watch-stream.ts',
    find: 'if (watch.progressDue && watch.startRevision <= watch.reached + 1) {',
    replace: 'if (watch.progressDue) {',
    killedBy: {
      file: 'packages/gateway/src/etcd/watch-stream.test.ts',
      test: 'tells no watch of progress that lies before its first revision: it would be resumed too early',
    },
  },
  {
    name: 'question-dies-with-its-attempt',
    rule: 'a part that begins again is asked again how far it is (merged-watch.ts MW7)',
    file: 'packages/gateway/src/routing/watches/merged-watch.ts',
    find: '    if (part.owes) part.watch.ask(); // MW7\n',
    replace: '',
    killedBy: {
      file: 'packages/gateway/src/routing/watches/merged-watch.test.ts',
      test: 'asks a part again that has begun again meanwhile, and one that was paused (MW7)',
    },
  },
  {
    name: 'answer-to-an-earlier-question',
    rule: 'an answer to a question that was asked in an earlier attempt is none (routed-watch.ts V4)',
    file: 'packages/gateway/src/routing/watches/routed-watch.ts',
    find: 'if (this.#asked === 0 || message.question < this.#asked) {',
    replace: 'if (this.#asked === 0) {',
    killedBy: {
      file: 'packages/gateway/src/routing/watches/merged-watch.test.ts',
      test: 'asks a part again that has begun again meanwhile, and one that was paused (MW7)',
    },
  },
  {
    name: 'deposed-leader-answers-how-far-it-is',
    rule: 'a range that counts by itself says how far it is when it is known to lead (closed-revisions.ts closeNewest)',
    file: 'packages/dataserver/src/range/requests/closed-revisions.ts',
    find: 'done(refused === undefined ? undefined : this.#refusal(refused))',
    replace: 'done(undefined)',
    killedBy: {
      file: 'packages/dataserver/src/range/requests/closed-revisions.test.ts',
      test: 'that counts by itself asks nobody how far it is, but has to lead: a later leader may be further',
    },
  },
  {
    name: 'answer-below-what-was-closed-for-it',
    rule: 'an answer names at least what was closed for its question, also over a merge (watch-hub.ts W6)',
    file: 'packages/dataserver/src/watch/watch-hub.ts',
    find: 'question === NO_QUESTION || revision < closed',
    replace: 'question === NO_QUESTION',
    killedBy: {
      file: 'packages/dataserver/src/watch/watch-hub.property.test.ts',
      test: 'answer a question with what was closed for it, or not at all: a merge may bring keys of which less is (W6)',
    },
  },
];
