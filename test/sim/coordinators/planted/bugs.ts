/**
 * Bugs planted in the coordinator of transactions over ranges, each in one place. For each bug,
 * planted-bugs.long.test.ts runs its `seed`, which breaks one of its `properties`
 * (gateway/src/transactions/test-coordinator-histories.ts).
 */
import type { PlantedBug } from '../../common/planted/planted-bug.ts';

const FOLDER = 'packages/gateway/src/transactions';
const ATTEMPT = `${FOLDER}/attempt.ts`;

export const COORDINATOR_BUGS: readonly PlantedBug[] = [
  {
    name: 'revision-drawn-before-all-is-prepared',
    rule: 'the revision is drawn after all prepares (design §11 ▸)',
    file: ATTEMPT,
    find: '    const prepared: Prepared[] = [];\n    prepared[0] = await this.#prepare(0); // AT1',
    replace:
      '    const early = await this.#deps.revisions.unique.draw(0, this.#deps.calls.signal);\n    this.#deps = { ...this.#deps, revisions: { ...this.#deps.revisions, unique: { draw: async () => early } as never } };\n    const prepared: Prepared[] = [];\n    prepared[0] = await this.#prepare(0);',
    seed: 5,
    properties: ['W1', 'W2'],
  },
  {
    name: 'commits-what-is-not-prepared',
    rule: 'a transaction commits only what all parts were prepared for (attempt.ts AT2)',
    file: ATTEMPT,
    find: '      prepared[part] = await this.#prepare(part);',
    replace: '      await this.#prepare(part).then((one) => prepared.splice(part, 1, one), () => {});',
    seed: 1,
    properties: ['W1'],
  },
  {
    name: 'lost-decision-is-taken-for-none',
    rule: 'from when the decision is sent on the outcome is unknown, never failed (attempt.ts AT4)',
    file: ATTEMPT,
    find: 'if (mayBeApplied(error)) throw unknownOutcome(error);',
    replace: "if (mayBeApplied(error)) throw new ServiceError('DEADLINE_EXCEEDED', 'late');",
    seed: 3,
    properties: ['W2'],
  },
  {
    name: 'remembered-requests-are-tried-anew',
    rule: 'a range that remembers a request says what came of it (coordinator.ts CT1)',
    file: ATTEMPT,
    find: 'requestId: identity.requestId, primaryKey: plan.primaryKey };',
    replace: 'requestId: identity.requestId + txnId, primaryKey: plan.primaryKey };',
    seed: 1,
    properties: ['W1'],
  },
  {
    name: 'nothing-compares-as-nothing',
    rule: 'a comparison of keys that are not there compares as one of them, in whatever ranges they would be (parts.ts)',
    file: `${FOLDER}/parts.ts`,
    find: 'return found.has(number) || (!isLockCompare(compare) && compareHolds(compare, undefined));',
    replace: 'return found.has(number) || isLockCompare(compare) || !!compare.end || compareHolds(compare, undefined);',
    seed: 1,
    properties: ['W1'],
  },
];
