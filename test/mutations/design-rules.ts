/**
 * For each rule of the design about ranges (marked ▸ there, §6 to §12): the planted bugs that break it, and what finds
 * them.
 */
import { CLUSTER_BUGS } from '../sim/cluster/planted/bugs.ts';
import { COORDINATOR_BUGS } from '../sim/coordinators/planted/bugs.ts';
import { LEASE_BUGS } from '../sim/leases/planted/bugs.ts';
import { MERGE_BUGS } from '../sim/range-cluster/planted/bugs.ts';
import { FENCE_BUGS } from '../sim/range-cluster/planted/fence-bugs.ts';
import { TXN_BUGS } from '../sim/range-cluster/planted/txn-bugs.ts';
import { REVISION_BUGS } from '../sim/revisions/planted/bugs.ts';
import { TRANSACTION_BUGS } from '../sim/transactions/planted/bugs.ts';
import type { Mutation } from './mutation.ts';
import { RANGE_RULES } from './range-rules.ts';

/** [section of the design, rule, names of planted bugs] */
type DesignRule = readonly [string, string, readonly string[]];

const STORAGE: readonly DesignRule[] = [
  ['§6', 'a delete is dropped only if LevelDB is known not to hold the key', ['deletes-of-new-keys-only']],
  ['§6', 'a checkpoint waits until the log is durable up to what it holds', ['checkpoint-ahead-of-the-log']],
  ['§6', 'scans and snapshots pin the overlay and a LevelDB snapshot in one step', ['view-of-two-moments']],
  ['§6', 'no crash loses what a split creates, or makes it twice', ['child-runs-before-it-is-durable']],
  [
    '§6',
    'the log of a range that ended goes after the checkpoint that records the end, and its rows stay with who has them',
    ['log-of-a-removed-replica-stays', 'keys-of-the-target-cleared-with-the-source'],
  ],
  ['§6', 'a log that ends before what is applied is not taken for all', ['log-that-begins-too-late-is-taken']],
  ['§6', 'what replaces a span drops the overlay there', ['rebuild-keeps-what-waits']],
  ['§6', 'a marked span keeps overlapping replicas from being created', ['replica-beside-a-half-installed-one']],
  ['§6', 'a marked replica neither applies nor campaigns', ['half-installed-replica-runs']],
  [
    '§7',
    'the memory of outcomes is carried by checkpoint and snapshot',
    ['outcome-added-to-a-stored-page', 'outcomes-kept-over-install'],
  ],
  [
    '§7',
    'it is copied by split and united by merge',
    ['child-remembers-nothing', 'merge-forgets-what-the-source-remembered'],
  ],
  [
    '§7',
    'it is replicated state: what apply sees of it is the same on every replica',
    ['forgotten-outcomes-answer-some-nodes', 'parts-in-the-order-of-their-coming'],
  ],
  [
    '§7',
    'a command past its deadline is refused, and outcomes are kept as long',
    ['late-commands-are-applied', 'outcomes-forgotten-early'],
  ],
  [
    '§7',
    'a retry that has become a transaction over ranges keeps its request id',
    ['later-attempts-forget-earlier-ones'],
  ],
];

const REVISIONS_AND_LEASES: readonly DesignRule[] = [
  [
    '§8',
    'a block serves commands that were queued before its request was sent, in that term',
    ['block-serves-later-commands', 'block-of-an-earlier-term'],
  ],
  ['§8', 'a revision at or below the last is refused', ['revisions-of-a-block-again']],
  [
    '§8',
    'a revision is closed when all blocks that were requested before are applied',
    ['closed-before-the-log-is-applied', 'closed-before-the-draw-has-ended'],
  ],
  ['§8', 'nothing is closed that a prepared transaction may commit at', ['closed-above-prepared-transactions']],
  ['§8', 'it is closed by a leader whose lease was valid after it was drawn', ['closed-without-confirmation']],
  ['§9', 'a keep-alive is acknowledged under confirmed leadership', ['keep-alive-without-leadership']],
  ['§9', 'an acknowledgement counts from the heartbeat that it is of', ['lease-counted-from-the-answer']],
  [
    '§9',
    'a TTL that is changed counts safely',
    [
      ...['shorter-ttl-counted-when-answered', 'longer-ttl-counted-before-a-heartbeat'],
      ...['acknowledged-ttl-ignored', 'late-change-of-a-lease'],
    ],
  ],
  ['§9', 'after proposing its expiry, a leader answers no keep-alive of a lease', ['keep-alive-beside-an-expiry']],
];

const TRANSACTIONS_AND_RANGES: readonly DesignRule[] = [
  [
    '§11',
    'a part holds shared intents on what it compares or reads',
    ['compared-keys-are-not-held', 'release-under-an-intent', 'session-ends-under-an-intent'],
  ],
  [
    '§11',
    'it holds exclusive ones on what it may write, and others wait or fail',
    ['writes-pass-intents', 'prepares-pass-intents', 'reads-pass-intents'],
  ],
  ['§11', 'the revision is drawn after all prepares', ['revision-drawn-before-all-is-prepared']],
  ['§11', 'the record decides, and a request that meets an intent asks it', ['expired-parts-are-aborted-unasked']],
  ['§11', 'a committed record stays until every intent is resolved', ['record-dropped-before-all-is-resolved']],
  [
    '§11',
    'a transaction that could change a key twice is refused in every order and at every depth',
    ['puts-compared-with-earlier-deletes-only', 'nested-transactions-are-not-compared'],
  ],
  [
    '§11',
    'of what was prepared the committed branches are executed, all of them and no others',
    ['nested-branches-are-forgotten', 'both-branches-are-executed', 'what-cannot-be-executed-is-skipped'],
  ],
  ['§12', 'split and merge are refused while a configuration is joint', ['split-while-joint', 'sealed-while-joint']],
  ['§12', 'a merge is decided when every replica has the seal', ['merge-without-the-word-of-all-nodes']],
  ['§12', 'epoch and keys are checked again at apply', ['keys-not-checked-at-apply']],
];

export const DESIGN_RULES: readonly DesignRule[] = [...STORAGE, ...REVISIONS_AND_LEASES, ...TRANSACTIONS_AND_RANGES];

const SIMULATIONS: readonly (readonly [string, readonly Mutation[]])[] = [
  ['cluster', CLUSTER_BUGS],
  ['coordinators', COORDINATOR_BUGS],
  ['leases', LEASE_BUGS],
  ['range-cluster', [...MERGE_BUGS, ...FENCE_BUGS, ...TXN_BUGS]],
  ['revisions', REVISION_BUGS],
  ['transactions', TRANSACTION_BUGS],
];

/** What finds a planted bug: a simulation, or the file of a unit test. Undefined if there is no such bug. */
export function finderOf(name: string): string | undefined {
  const simulation = SIMULATIONS.find(([, bugs]) => bugs.some((bug) => bug.name === name));
  if (simulation !== undefined) return `\`sim/${simulation[0]}\``;
  const rule = RANGE_RULES.find((one) => one.name === name);
  return rule && `\`${rule.killedBy.file.replace(/^packages\/(dataserver\/src\/)?/, '')}\``;
}

/** The table in docs/testing/planted-bugs.md. */
export function designRulesTable(): string {
  const rows = DESIGN_RULES.map(([section, rule, names]) => {
    const bugs = names.map((name) => `\`${name}\``).join(', ');
    const finders = [...new Set(names.map((name) => finderOf(name) ?? 'nobody'))].join(', ');
    return `| ${section} | ${rule} | ${bugs} | ${finders} |`;
  });
  return ['| | Rule | Planted bug | Found by |', '| --- | --- | --- | --- |', ...rows].join('\n');
}
