/**
 * Rules of ranges with a unit test that notices their violation: for each rule, a mutation that breaks the code behind
 * it.
 */

import { AUTH_RULES } from './auth-rules.ts';
import { CLIENT_RULES } from './client-rules.ts';
import { COMMAND_RULES } from './command-rules.ts';
import { FOUNDING_RULES } from './founding-rules.ts';
import { HARDENING_RULES } from './hardening-rules.ts';
import { OF_LISTENERS, OF_LOCKS } from './lock-rules.ts';
import { LOG_IN_RULES } from './log-in-rules.ts';
import type { RuleMutation } from './mutation.ts';
import { PEER_RULES } from './peer-rules.ts';
import { STEERING_RULES } from './steering-rules.ts';
import { TLS_RULES } from './tls-rules.ts';
import { PROGRESS_RULES } from './watch-rules.ts';

const DATA = 'packages/dataserver/src/';

/** [name, the resulting fault, file, find, replace, file of the test, test] */
type Row = readonly [string, string, string, string, string, string, string];

const ROWS: readonly Row[] = [
  [
    'deletes-of-new-keys-only',
    'the delete of a key that LevelDB holds is dropped',
    'engine/resident-table.ts',
    "? 'row' : this",
    "? 'nothing' : this",
    'engine/overlay-engine.property.test.ts',
    'equals a naive map under changes, scans, views, clears, checkpoints and a crash at any step',
  ],
  [
    'checkpoint-ahead-of-the-log',
    'a checkpoint does not wait for the log',
    'engine/overlay-engine.ts',
    'await this.#deps.logDurable?.();',
    '',
    'engine/engine.test.ts',
    'writes nothing before the log is durable',
  ],
  [
    'view-of-two-moments',
    'the disk below a view is that of a later moment than what lies over it',
    'engine/overlay-engine.ts',
    'snapshot: this.#store.snapshot(),',
    'snapshot: { get: (key) => this.#store.get(key), cursor: (range) => this.#store.cursor(range), release() {} },',
    'engine/overlay-engine.property.test.ts',
    'equals a naive map under changes, scans, views, clears, checkpoints and a crash at any step',
  ],
  [
    'rebuild-keeps-what-waits',
    'what waits for a checkpoint in rows that are replaced stays beside the new ones',
    'engine/overlay-engine.ts',
    '        for (const range of ranges) this.#forgetChanges(range);\n',
    '',
    'engine/engine.test.ts',
    'a rebuilt span holds the new rows and nothing else, at once and after a crash; the rest is untouched',
  ],
  [
    'half-installed-replica-runs',
    'a replica runs whose rows a snapshot was replacing when the process ended',
    'store.ts',
    'if (isStateKey(key) && !halves.has(rangeIdOfLocalKey(key)))',
    'if (isStateKey(key))',
    'store.install.test.ts',
    'runs the replica once that is finished, at the position of the snapshot',
  ],
  [
    'replica-beside-a-half-installed-one',
    'a replica is created that shares keys with one whose rows are being replaced',
    'store.ts',
    '    this.#checkNotShared(descriptor);\n',
    '',
    'store.install.test.ts',
    'creates no replica that shares keys with it, neither before nor afterwards',
  ],
  [
    'child-runs-before-it-is-durable',
    'the child of a split runs before the checkpoint that it is in',
    'store.ts',
    '    await durable;\n      // Not resolved',
    '    // Not resolved',
    'store.split.test.ts',
    'runs the child under its own id once it is durable together with the split, and not before',
  ],
  [
    'parent-ends-before-its-child-takes-part',
    'the end of a range is recorded while a child of it has yet to take part in checkpoints',
    'replicas/replica-remover.ts',
    'await last?.settled(); // RM4',
    '',
    'store.split.test.ts',
    'remembers what the parent did, also when the node dies at step 22, and once more',
  ],
  [
    'source-goes-while-its-target-ends',
    'the source of a merge is taken away while the end of its target is not durable yet',
    'replicas/merged-replicas.ts',
    ' ?? replicas.ending(seal.targetId)',
    '',
    'store.merge.test.ts',
    'is there after a crash that takes back the end of the target',
  ],
  [
    'what-an-ending-range-takes-over-is-free',
    'what a range takes over while it is taken away may become the keys of another one before they are cleared',
    'replicas/replica-remover.ts',
    'last?.span ?? (() => span)',
    '() => span',
    'store.merge.test.ts',
    'leaves keys that nobody else gets before they are cleared away with those of the target',
  ],
  [
    'child-remembers-nothing',
    'a split leaves the child without what was remembered',
    'state/outcomes/outcomes.ts',
    '    copy.#elders = this.#elders;\n',
    '',
    'state/reshape/split.test.ts',
    'leaves both with what was remembered: a retry is answered, on either side, and not applied again',
  ],
  [
    'merge-forgets-what-the-source-remembered',
    'a merge leaves out what the source remembers',
    'state/outcomes/outcomes.ts',
    'this.#index.setNew({ entries: page.entries, at: page.entries.count - 1 });',
    '',
    'state/reshape/merge.test.ts',
    'unites what both remember: whoever asks again is answered, and what both knew is kept once',
  ],
  [
    'lent-outcomes-are-let-go',
    'a parent deletes pages that its child has yet to take over',
    'state/outcomes/outcomes.ts',
    'if (this.#unsettled > 0) return;',
    '',
    'state/outcomes/outcomes.test.ts',
    'is not let go by the parent before the child takes part in checkpoints',
  ],
  [
    'late-commands-are-applied',
    'a command is applied after its deadline',
    'state/admission.ts',
    'item.deadlineMs !== 0 && item.deadlineMs < rangeTimeMs',
    'item.deadlineMs < 0',
    'state/range-state.test.ts',
    'a command past its deadline is refused, remembered or not',
  ],
  [
    'outcomes-forgotten-early',
    'what a command came to is forgotten before its deadline',
    'state/outcomes/outcomes.ts',
    'page === undefined || page.maxDeadlineMs >= rangeTimeMs',
    'page === undefined || page.maxDeadlineMs >= rangeTimeMs + 5',
    'state/outcomes/outcomes.property.test.ts',
    'whatever nodes have forgotten, and when they wrote it down, apply sees the same on all, also behind a merge',
  ],
  [
    'forgotten-outcomes-answer-some-nodes',
    'apply asks for outcomes whose deadline has passed, which some replicas have forgotten',
    'state/outcomes/outcomes.ts',
    'entry !== undefined && entry.deadlineMs >= rangeTimeMs ? entry : undefined',
    'rangeTimeMs > 0 ? entry : undefined',
    'state/outcomes/outcomes.property.test.ts',
    'whatever nodes have forgotten, and when they wrote it down, apply sees the same on all, also behind a merge',
  ],
  [
    'parts-in-the-order-of-their-coming',
    'what prepared parts come to depends on the order in which a node learned of them',
    'transactions/prepared-parts.ts',
    '[...parts].sort((a, b) => (a.txnId === b.txnId ? a.part - b.part : a.txnId < b.txnId ? -1 : 1))',
    'parts',
    'transactions/range-transactions.test.ts',
    'who was in the way of a transaction is told and remembered alike',
  ],
  [
    'revisions-of-a-block-again',
    'a change takes a revision at or below the last',
    'state/numbering.ts',
    'const next = Math.max(last + 1, block.first);',
    'const next = block.first;',
    'state/kv/compaction.test.ts',
    'at a revision that it has not reached makes it move on: it reads and writes above',
  ],
  [
    'revision-of-an-unchanged-range',
    'the answer to a command that changed nothing carries a revision before writes that were acknowledged in other ranges',
    'state/numbering.ts',
    'Math.max(last, block.first - 1) : last',
    'last : last',
    'state/numbering.test.ts',
    'what changed nothing answers with the last one before its block (N5)',
  ],
  [
    'read-before-what-is-under-way',
    'a read is answered at a revision while a change at or below it is under way',
    'range/requests/queries.ts',
    'this.#deps.closing.whenUsedUp(notBefore, (error) => {',
    '((_revision: number, then: (error?: ServiceError) => void) => (then(), () => {}))(notBefore, (error) => {',
    'range/range-replica.test.ts',
    'a read that may not be before a revision waits until nothing comes at or below it, and carries it (Q6)',
  ],
  [
    'block-of-an-earlier-term',
    'a block serves in another term than that in which it was requested',
    'range/requests/revision-allocation-queue.ts',
    "role === 'leader' && term === this.#requestedIn",
    "role === 'leader' && term >= this.#requestedIn",
    'range/requests/revision-allocation-queue.test.ts',
    'are not proposed with a block that was requested in another term (B2)',
  ],
  [
    'keep-alive-beside-an-expiry',
    'a keep-alive is acknowledged although the expiry of the lease was proposed',
    'range/leases/lease-keeper.ts',
    '    if (kept.expiring)\n',
    '    if (kept.deadlineMs < 0)\n',
    'range/leases/lease-keeper.test.ts',
    'acknowledges nothing between the proposal of an expiry and its outcome (LK3)',
  ],
  [
    'ended-lease-told-as-stale',
    'who has ended a lease is told what says that nothing was applied, when its record goes to another range',
    'range/leases/lease-endings.ts',
    "new ServiceError('UNKNOWN_OUTCOME', 'the lease",
    "new ServiceError('STALE_EPOCH', 'the lease",
    'range/leases/lease-endings.test.ts',
    'is never told that it did not end, though its record goes to another range (LE4)',
  ],
  [
    'revoke-answered-with-its-first-revision',
    'the end of a lease that took several entries is answered with the revision of the first one',
    'range/leases/lease-end-revision.ts',
    'else done(undefined, { ...reply, revision: newest });',
    'else done(undefined, reply);',
    'range/leases/lease-end-revision.test.ts',
    'has a revision that the master named after the last of them, if the master numbers the range (ER3)',
  ],
  [
    'lease-gone-elsewhere-taken-for-ended',
    'a lease whose record goes to another range counts as one that ended here, in one entry',
    'range/leases/lease-manager.ts',
    'if (end !== undefined) this.#endRevision.ended(id, end);',
    'this.#endRevision.ended(id, end ?? { revision: this.#deps.state.revision, isWhole: true });',
    'range/leases/lease-manager.test.ts',
    'a lease whose record goes to another range has not ended here (ER2)',
  ],
  [
    'lease-audit-waits-for-periodic-work',
    'a range that had no leases of others begins to ask about them only when periodic work visits it',
    'range/range-replica.ts',
    'transactions.applied();\n    leases.applied();',
    'transactions.applied();',
    'range/range-replica.test.ts',
    'a leader asks about a lease from the entry that brings it on, without periodic work (LA4, EM4)',
  ],
  [
    'compaction-follows-visits-one-at-a-time',
    'a range that is visited rarely compacts what its leader saw first, and the rest with as many later visits',
    'range/auto-compactor.ts',
    '      this.#samples.shift();\n    }',
    '      this.#samples.shift();\n      break;\n    }',
    'range/auto-compactor.test.ts',
    'is late by one call at most, however far apart calls are (AU1)',
  ],
  [
    'lease-with-locks-taken-for-empty',
    'a lease that never expires is ended though it holds another lock',
    'range/leases/empty-leases.ts',
    'result.locks.length === 0 && ',
    '',
    'range/leases/empty-leases.test.ts',
    "goes on if it 'holds another lock'",
  ],
  [
    'new-lease-taken-for-empty',
    'a lease that was granted for ever is ended before its first key',
    'range/leases/empty-leases.ts',
    'lease.endsEmpty && ',
    '',
    'range/leases/empty-leases.test.ts',
    "goes on if it 'was granted so, and is new (EM1)'",
  ],
  [
    'lease-ended-by-an-old-look',
    'a lease that was seen to be empty is ended although a key or a lock came to belong to it since',
    'state/leases/lease-commands.ts',
    'if (isLeft(range, id)) throw',
    'if (false) throw',
    'state/leases/lease-commands.test.ts',
    "comes after 'a key' between the look and the end",
  ],
  [
    'late-change-of-a-lease',
    'a change of a lease that comes late takes a later one back',
    'state/leases/lease-commands.ts',
    'if (number < lease.change)',
    'if (number < 0)',
    'state/leases/lease-commands.test.ts',
    'that comes late, behind a later one, is refused; one that is repeated is answered again (LC4)',
  ],
  [
    'split-while-joint',
    'a range is split while its configuration is joint',
    'state/reshape/split.ts',
    '  if (isJoint(conf)) {',
    '  if (isJoint(conf) && at.length === 0) {',
    'state/reshape/split.test.ts',
    'while the membership is joint',
  ],
  [
    'sealed-while-joint',
    'a range is sealed for a merge while its configuration is joint',
    'state/reshape/merge.ts',
    'if (!isSameEpoch(epoch, descriptor.epoch)) return staleEpoch([descriptor]);\n  if (isJoint(conf))',
    'if (!isSameEpoch(epoch, descriptor.epoch)) return staleEpoch([descriptor]);\n  if (rangeId === 0)',
    'state/reshape/merge.test.ts',
    'is not made of one whose membership is joint, nor of one that counts by itself',
  ],
  [
    'keys-not-checked-at-apply',
    'a command is applied whose keys a split has taken from the range',
    'state/admission.ts',
    'batch.epoch.version !== descriptor.epoch.version || !commandWithin(bounds, item.command)',
    'batch.epoch.version < 0',
    'store.split.test.ts',
    'and read by an epoch of before are refused, also those whose ReadIndex was under way; apply refuses the same',
  ],
  [
    'split-loses-the-intent-on-a-lock',
    'a split drops the intent of a prepared part on a lock whose version it compares',
    'transactions/prepared-part.ts',
    'return spanContains(bounds.routed, lockPrefix(compare.lock)) ? compare : undefined;',
    'return undefined;',
    'transactions/lock-compares.test.ts',
    'goes with its lock when the range is split, and outlives a crash',
  ],
  [
    'what-cannot-be-executed-is-skipped',
    'an operation that was prepared and cannot be executed is skipped: the transaction is applied in part',
    'transactions/part-execution.ts',
    'if (!(cause instanceof ServiceError)) throw cause;',
    "if (cause instanceof ServiceError) return { type: 'txn' } as never;",
    'transactions/range-transactions.test.ts',
    'PE1: a resolve that makes the part change a key twice stops the process, and nothing is applied',
  ],
];

const OF_RANGES = ROWS.map(
  ([name, rule, file, find, replace, testFile, test]): RuleMutation => ({
    ...{ name, rule, file: DATA + file, find, replace },
    killedBy: { file: DATA + testFile, test },
  }),
);

/** What coordinators conclude from the answers of ranges. */
const OF_COORDINATORS: readonly RuleMutation[] = [
  {
    name: 'stale-version-counts-as-held',
    rule: 'a transaction commits although a version that it compares is not the one by which the lock is held',
    file: 'packages/gateway/src/transactions/parts.ts',
    find: 'if (failed.has(number)) return false;',
    replace: 'if (failed.has(number)) return isLockCompare(compare);',
    killedBy: {
      file: 'packages/gateway/src/transactions/coordinator.property.test.ts',
      test: 'transactions over ranges are as if each had happened at one moment, whatever is lost and whichever coordinator ends',
    },
  },
];

const OF_TRANSACTIONS: readonly RuleMutation[] = [
  {
    name: 'nested-transactions-are-not-compared',
    rule: 'what is nested in a list is not compared with the rest of the list',
    file: 'packages/protocol/src/internal/changed-once.ts',
    find: 'for (const change of changesOf(op.txn.success, onClash)) changes.push(take(change, group));',
    replace: 'changesOf(op.txn.success, onClash);',
    killedBy: {
      file: 'packages/protocol/src/internal/changed-once.test.ts',
      test: 'it is refused exactly when two of its operations that can meet change one key, whatever the order and the depth',
    },
  },
  {
    name: 'changes-of-a-key-twice-reach-ranges',
    rule: 'a transaction that could change a key twice is sent to ranges (range-backend.ts RB1)',
    file: 'packages/gateway/src/routing/calls/range-backend.ts',
    find: "const refusal = command.type === 'txn' ? changedTwice(command.txn) : undefined;",
    replace: 'const refusal = changedTwice({ success: [], failure: [] });',
    killedBy: {
      file: 'packages/gateway/src/routing/calls/range-backend.test.ts',
      test: 'RB1: a transaction that could change a key twice is refused, and no range is sent anything',
    },
  },
  {
    name: 'lost-results-are-unknown',
    rule: 'a transaction that was applied, with results that are not remembered, is told as one whose outcome is unknown',
    file: 'packages/gateway/src/transactions/txn-request.ts',
    find: "return new ServiceError('RESULT_LOST', message",
    replace: "return new ServiceError('UNKNOWN_OUTCOME', message",
    killedBy: {
      file: 'packages/gateway/src/transactions/coordinator.test.ts',
      test: 'what a range tells nothing of is not told as nothing found',
    },
  },
];

const LEFT_SEAL = 'test/sim/range-cluster/left-seal.test.ts';

const OF_MERGES: readonly RuleMutation[] = [
  {
    name: 'left-seal-is-not-asked-about',
    rule: 'a sealed source whose target has left its nodes asks what became of the merge (orphaned-seals.ts LS1)',
    file: 'packages/dataserver/src/range/reshape/orphaned-seals.ts',
    find: 'if (seal !== undefined && source.serving && !here.some((by) => hasWordOn(seal, source, by))) {',
    replace: 'if (seal !== undefined && source.serving && here.some((by) => hasWordOn(seal, source, by))) {',
    killedBy: {
      file: LEFT_SEAL,
      test: 'so is one that the target has left all nodes of, before the round was decided',
    },
  },
  {
    name: 'open-round-is-left-open',
    rule: 'an open round that nobody drives is refused before the source hears of it (merges.ts MR4)',
    file: 'packages/dataserver/src/range/reshape/merge-service.ts',
    find: "if (wordOf(replica, request) !== 'open') return tell(replica, request, done);",
    replace: 'if (replica !== undefined) return tell(replica, request, done);',
    killedBy: {
      file: LEFT_SEAL,
      test: 'so is one that the target has left all nodes of, before the round was decided',
    },
  },
];

export const RANGE_RULES: readonly RuleMutation[] = [
  ...PROGRESS_RULES,
  ...OF_MERGES,
  ...OF_LISTENERS,
  ...OF_LOCKS,
  ...OF_RANGES,
  ...CLIENT_RULES,
  ...LOG_IN_RULES,
  ...AUTH_RULES,
  ...FOUNDING_RULES,
  ...PEER_RULES,
  ...TLS_RULES,
  ...HARDENING_RULES,
  ...COMMAND_RULES,
  ...OF_COORDINATORS,
  ...OF_TRANSACTIONS,
  ...STEERING_RULES,
];
