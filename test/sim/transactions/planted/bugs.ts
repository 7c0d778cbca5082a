/**
 * Bugs planted for the simulation of transactions over ranges, each in one place. For each bug,
 * planted-bugs.long.test.ts runs its `seed`, which breaks one of its `properties` (run.ts).
 */
import type { PlantedBug } from '../../common/planted/planted-bug.ts';

const FOLDER = 'packages/dataserver/src/transactions';
const RANGE_TRANSACTIONS = `${FOLDER}/range-transactions.ts`;
const SETTLER = 'packages/dataserver/src/transactions/intent-resolver.ts';

export const TRANSACTION_BUGS: readonly PlantedBug[] = [
  {
    name: 'compared-keys-are-not-held',
    rule: 'prepare takes shared intents on what it compares (design §11 ▸)',
    file: `${FOLDER}/intents.ts`,
    find: 'for (const compare of part.compares) if (!isLockCompare(compare)) take(compare, false);',
    replace: '',
    seed: 5,
    properties: ['X1'],
  },
  {
    name: 'writes-pass-intents',
    rule: 'whoever would change a key under an intent waits (design §11 ▸)',
    file: 'packages/dataserver/src/transactions/intent-conflicts.ts',
    find: 'return firstOf((found) => touchedByTxn(command.txn, parts.holding(found)));',
    replace: 'return undefined;',
    seed: 1,
    properties: ['X1'],
  },
  {
    name: 'prepares-pass-intents',
    rule: 'a prepare fails that meets intents of another transaction (decision 19, T2)',
    file: RANGE_TRANSACTIONS,
    find: 'if (holders.length > 0) return conflictWith(holders);',
    replace: 'if (holders.length > 1_000) return conflictWith(holders);',
    seed: 1,
    properties: ['X1'],
  },
  {
    name: 'reads-pass-intents',
    rule: 'the newest state of what is under an exclusive intent is read when that is resolved (decision 19, T2)',
    file: 'packages/dataserver/src/range/requests/queries.ts',
    find: 'const holder = this.#holder(query);',
    replace: 'const holder = this.#holder(query) && undefined;',
    seed: 10,
    properties: ['X1'],
  },
  {
    name: 'expired-parts-are-aborted-unasked',
    rule: 'whoever meets an old intent asks the primary (design §11)',
    file: SETTLER,
    find: "if (state === undefined || state.state === 'pending' || !this.#deps.serving()) end();\n      else this.#resolve(part, state.state ===",
    replace: 'if (!this.#deps.serving()) end();\n      else this.#resolve(part, state?.state ===',
    seed: 1,
    properties: ['X1'],
  },
  {
    name: 'closed-above-prepared-transactions',
    rule: 'no revision is closed at or above one that a prepared transaction may commit at (design §8 ▸)',
    file: 'packages/dataserver/src/range/requests/closed-revisions.ts',
    find: 'Math.min(Math.max(state.revision, this.#confirmed), prepared.earliestCommit() - 1)',
    replace: 'Math.max(state.revision, this.#confirmed)',
    seed: 1,
    properties: ['X1', 'X3'],
  },
  {
    name: 'record-dropped-before-all-is-resolved',
    rule: 'a committed record stays until every intent is durably resolved (design §11 ▸)',
    file: SETTLER,
    find: 'if (--left > 0) return;\n      if (failed ||',
    replace: 'if (--left < 0) return;\n      if (',
    seed: 28,
    properties: ['X1'],
  },
  {
    name: 'later-attempts-forget-earlier-ones',
    rule: "a range that remembers the client's request answers a prepare with what came of it (design §7 ▸)",
    file: RANGE_TRANSACTIONS,
    find: "const before = command.requestId === '' ? undefined : this.#remembered(command.requestId);",
    replace: 'const before = this.#remembered(prepareRequestId(txnId, part));',
    seed: 5,
    properties: ['X1'],
  },
];
