/**
 * Bugs planted for the simulation of revisions, each in one place. For each bug, planted-bugs.long.test.ts runs its
 * `seed`, which breaks one of its `properties` (truth.ts).
 */
import type { PlantedBug } from '../../common/planted/planted-bug.ts';

const ISSUER = 'packages/master/src/term/revision-issuer.ts';
const ALLOCATION_QUEUE = 'packages/dataserver/src/range/requests/revision-allocation-queue.ts';
const CLOSED = 'packages/dataserver/src/range/requests/closed-revisions.ts';

export const REVISION_BUGS: readonly PlantedBug[] = [
  {
    name: 'block-serves-later-commands',
    rule: 'a block serves only commands that were queued before its request was sent (design §8)',
    file: ALLOCATION_QUEUE,
    find: 'const covered = this.#covered;\n    this.#covered = [];\n    for',
    replace: 'const covered = [...this.#covered, ...this.#waiting.splice(0)];\n    this.#covered = [];\n    for',
    seed: 1,
    properties: ['T1', 'T2', 'T3', 'T4'],
  },
  {
    name: 'revisions-above-the-bound-of-the-log',
    rule: 'revisions come from windows that were persisted before (design §8)',
    file: ISSUER,
    find: '    this.#lift(last);\n    return false;',
    replace: '    this.#lift(last);\n    return true;',
    seed: 4,
    properties: ['T1', 'T3', 'T4', 'T5'],
  },
  {
    name: 'floor-not-persisted',
    rule: 'the floor is persisted before the answer (design §8)',
    file: ISSUER,
    find: 'Math.max(this.#next - 1, floor) + wanted',
    replace: 'this.#next - 1 + wanted',
    seed: 44,
    properties: ['T1', 'T3', 'T4', 'T5'],
  },
  {
    name: 'revisions-without-confirmation',
    rule: 'the master gives out revisions only while it is known to lead (design §8)',
    file: ISSUER,
    find: '    group.leaseRead((refused) => {',
    replace: '    ((tell: (refused: undefined) => void) => tell(undefined))((refused) => {',
    seed: 19,
    properties: ['T3', 'T4', 'T5'],
  },
  {
    name: 'window-of-an-earlier-term',
    rule: 'a leader of the masters begins above the bound that it finds (revision-issuer.ts V1)',
    file: ISSUER,
    find: 'this.#next = this.#deps.bound() + 1;',
    replace: 'this.#next = Math.max(this.#next, 1);',
    seed: 1,
    properties: ['T1', 'T3', 'T4', 'T5'],
  },
  {
    name: 'bound-of-revisions-lost-at-restart',
    rule: 'the bound of revisions never falls (state.ts M7)',
    file: 'packages/master/src/metadata/master-state.ts',
    find: 'this.#revisionBound = image.revisionBound;',
    replace: 'this.#revisionBound = 0;',
    seed: 3,
    properties: ['T1', 'T3', 'T4', 'T5'],
  },
  {
    name: 'closed-without-confirmation',
    rule: 'a revision is closed by a leader that led after it was drawn (design §8)',
    file: CLOSED,
    find: 'if (round?.confirmed && round.settledAt',
    replace: 'if (round && round.settledAt',
    seed: 24,
    properties: ['T4', 'T5'],
  },
  {
    name: 'closed-before-the-log-is-applied',
    rule: 'a revision is closed when the blocks that were requested before are applied (design §8)',
    file: CLOSED,
    find: 'round.settledAt = index;',
    replace: 'round.settledAt = 0;',
    seed: 1,
    properties: ['T4', 'T5'],
  },
  {
    name: 'closed-before-the-draw-has-ended',
    rule: 'a revision is closed when the draw that was under way has ended (closed-revisions.ts CL2)',
    file: ALLOCATION_QUEUE,
    find: 'if (this.#covered.length === 0) done();',
    replace: 'if (this.#covered.length >= 0) done();',
    seed: 1,
    properties: ['T4', 'T5'],
  },
];
