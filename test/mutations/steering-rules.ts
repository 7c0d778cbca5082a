/**
 * Rules of automatic merges and splits, and of automatic changes of masters: each rule broken in one place, and the
 * test that notices.
 */
import type { RuleMutation } from './mutation.ts';

/** [name, the rule, find, replace, test] */
type Row = readonly [string, string, string, string, string];

function rowsOf(place: { readonly file: string; readonly tests: string }, rows: readonly Row[]): RuleMutation[] {
  return rows.map(([name, rule, find, replace, test]) => ({
    ...{ name, rule, file: place.file, find, replace },
    killedBy: { file: place.tests, test },
  }));
}

const MERGES = {
  file: 'packages/master/src/scheduling/schedulers/merge.ts',
  tests: 'packages/master/src/scheduling/schedulers/merge.test.ts',
};

const OF_AUTOMATIC_MERGES = rowsOf(MERGES, [
  [
    'hot-neighbours-are-merged',
    'neighbours that have half of the load of a split together are not merged (MN1)',
    'load >= LOAD_SHARE_MAX * limit',
    'load >= 4 * limit',
    "'do not when they are asked for much'",
  ],
  [
    'growing-neighbours-are-merged',
    'what would be as large as a split after the quiet time is not merged (MN1)',
    'if (grown >= splits.bytes)',
    'if (bytes >= splits.bytes)',
    "'do not when they grow'",
  ],
  [
    'merged-before-they-are-quiet',
    'neighbours fit for the quiet time before they are merged (MN2)',
    'if (view.nowMs - watched.sinceMs < merging.quietMs) waiting++;',
    'if (view.nowMs < watched.sinceMs) waiting++;',
    'begins when the two were small for the quiet time; whoever only asks what would be done begins nothing',
  ],
  [
    'quiet-time-goes-on-over-splits',
    'the quiet time begins anew with a split or a merge (MN2)',
    '        before.targetVersion === targetVersion &&\n        before.sourceVersion === sourceVersion;',
    '        before.targetVersion <= targetVersion;',
    'waits anew after a split, a merge, or load',
  ],
  [
    'chosen-borders-are-merged-away',
    'a border that people chose stays (MN4)',
    'if (source.chosen && !merging.chosenBorders)',
    'if (source.chosen && merging.quietMs < 0)',
    "'do not when people chose the border'",
  ],
  [
    'merges-in-vain-as-often-as-ever',
    'what came to nothing is tried again after twice the time (MN6)',
    'settings.merging.quietMs * 2 ** watched.tries++',
    'settings.merging.quietMs',
    'comes to nothing more and more rarely',
  ],
]);

const BRAKE = {
  file: 'packages/dataserver/src/range/reshape/split-backpressure.ts',
  tests: 'packages/dataserver/src/range/reshape/split-backpressure.test.ts',
};

const OF_THE_BRAKE = [
  ...rowsOf({ ...BRAKE, file: 'packages/dataserver/src/range/requests/puts-values.ts' }, [
    [
      'deletes-wait-for-a-split',
      'what makes a range no larger is not held back (WB1)',
      "return command.op.type === 'put';",
      'return true;',
      "'a delete': held back false",
    ],
  ]),
  ...rowsOf(BRAKE, [
    [
      'a-full-range-takes-writes',
      'at its maximum a range refuses writes (WB2)',
      'if (pressure >= 1 || this.#waiting',
      'if (this.#waiting',
      'wait the longer the nearer it is to its maximum, and are refused there, to come again',
    ],
  ]),
  ...rowsOf(
    { file: 'packages/dataserver/src/range/stats/range-size.ts', tests: 'test/sim/range-cluster/brake.test.ts' },
    [
      [
        'writers-wait-where-nothing-can-be-split',
        'nobody is held back for one key that has all of a range (range-size.ts SZ4)',
        'if (estimate <= from || this.#isUndividable(sizes) || (!this.#running && this.candidate === undefined)) return 0;',
        'if (estimate <= from) return 0;',
        'do not wait where one key has all of it',
      ],
    ],
  ),
];

const ROOM = {
  file: 'packages/dataserver/src/range/requests/disk-room.ts',
  tests: 'packages/dataserver/src/range/requests/disk-room.test.ts',
};

const OF_THE_DISK = rowsOf(ROOM, [
  [
    'a-full-disk-takes-values',
    'below its reserve a node takes in nothing that puts values (DR1)',
    'capacityBytes > 0 && availableBytes < reserveBytes;',
    'availableBytes < 0;',
    'a put is refused below the reserve (DR1)',
  ],
  [
    'a-full-disk-takes-nothing',
    'what makes room, and locks, is let in however little there is (DR1)',
    'if (!putsValues(command)) return undefined;',
    'if (command === undefined) return undefined;',
    'a lock is let in however little there is (DR1)',
  ],
]);

const CHECK_TESTS = 'packages/master/src/admin/master-admin.test.ts';

const OF_HEALTH = [
  ...rowsOf({ file: 'packages/cli/src/node/health.ts', tests: 'packages/cli/src/node/health.test.ts' }, [
    [
      'all-nodes-unready-at-once',
      'a node is unready only where another one would serve better (NH2)',
      "unready === 'unlessAlone' && othersServe",
      "unready === 'unlessAlone'",
      'no disk has room',
    ],
    [
      'unready-for-the-cluster',
      'what concerns others makes no node unready (NH2)',
      'condition.own ? makesUnready(condition) : undefined',
      'makesUnready(condition)',
      'another one drains',
    ],
    [
      'old-news-of-the-own-disk',
      'what the node knows better than the masters comes from the node (NH1)',
      '!(FOUND_HERE.has(name) && (of === nodeId || of === 0))',
      'name !== undefined && of !== -1',
      'its disk has room again, which the masters do not know yet',
    ],
  ]),
  ...rowsOf({ file: 'packages/master/src/admin/cluster-health.ts', tests: CHECK_TESTS }, [
    [
      'led-by-the-silent',
      'a range has a leader only if the node that says so is still heard (CK2)',
      '!up.has(leaderNode)',
      'leaderNode === 0',
      'no leader in a node that said that it leads and is not heard any more',
    ],
  ]),
  ...rowsOf({ file: 'packages/master/src/admin/check.ts', tests: CHECK_TESTS }, [
    [
      'an-election-is-a-problem',
      'a range that elects its leader has no problem yet (CK2)',
      'leaderlessMs(rangeId) >= LEADERLESS_MS',
      'leaderlessMs(rangeId) >= 0',
      'finds a range without leader only when an election had the time to end',
    ],
    [
      'a-new-leader-tells-of-the-unheard',
      'a new leader says nothing of nodes that it has not heard yet (CK1)',
      'unheard(voter.nodeId) || isPresent(voter, range, byId)',
      'isPresent(voter, range, byId)',
      'nothing but its own newness',
    ],
    [
      'a-full-disk-is-not-told',
      'what a node finds wrong with itself is told (CK3)',
      'yield* reported.filter((condition) => condition.nodeId === nodeId);',
      'yield* [];',
      'what a node that is heard says of itself, and of nobody else',
    ],
  ]),
];

const MASTERS = { file: 'packages/master/src/masters/plan.ts', tests: 'packages/master/src/masters/plan.test.ts' };

const OF_MASTERS = [
  ...rowsOf(MASTERS, [
    [
      'masters-that-would-not-be-heard',
      'more than half of the masters are heard after each step (MS2)',
      'if (2 * heard.length <= voters.length)',
      'if (voters.length === 0)',
      "'not when too few would be heard (MS2)'",
    ],
    [
      'a-former-master-is-one-again',
      'a node that has left the masters never comes back into them (MS3)',
      ' && !former.includes(nodeId);',
      ';',
      "'who was a master is none again (MS3)'",
    ],
    [
      'two-masters-after-one',
      'the masters are no even number (MS5)',
      'if (voters % 2 === 1 || voters <= conf.voters.length) return joining;',
      'return joining;',
      "'a master that is alone gets two more,…'",
    ],
  ]),
  ...rowsOf({ file: MASTERS.file, tests: 'test/sim/cluster/replaced-masters.test.ts' }, [
    [
      'dead-masters-stay',
      'a master that is down for long is replaced (MS1)',
      "(node.liveness === 'down' && nodeId !== self)",
      "(node.liveness === 'down' && nodeId === 0)",
      "two of three founding masters die for good, one after the other ('leader', 'leader'): others take their places and know all",
    ],
  ]),
];

const SPLIT_TESTS = 'packages/dataserver/src/store.split.test.ts';
const ELECTION_TESTS = 'packages/raft/src/core/election.test.ts';

const OF_FIRST_LEADERS = [
  ...rowsOf({ file: 'packages/dataserver/src/range/reshape/splits.ts', tests: SPLIT_TESTS }, [
    [
      'child-led-by-whoever-leads-now',
      'a child begins with who led its parent in the term of the split (splits.ts S7)',
      'const leaderNode = this.#context.leadership.nodeOf(term); // S7',
      'const leaderNode = this.#context.leadership.node;',
      "of a range that is led 'in a later term': its child begins with that leader if it led in the term of the split (S7)",
    ],
  ]),
  ...rowsOf({ file: 'packages/raft/src/core/raft.ts', tests: ELECTION_TESTS }, [
    [
      'first-leader-again-after-a-restart',
      'only a group that is new begins with a leader (roles.ts R3)',
      'if (initial.firstLeader !== undefined && !initial.restarted)',
      'if (initial.firstLeader !== undefined && initial.hardState.term > 0)',
      'has no such leader any more after a restart',
    ],
  ]),
  ...rowsOf({ file: 'packages/raft/src/core/roles.ts', tests: ELECTION_TESTS }, [
    [
      'another-vote-beside-the-first-leader',
      'who begins under a leader has voted for it (roles.ts R3)',
      '  s.vote = leader;\n  s.hardDirty = true;\n  if (leader === s.id) return lead(s);',
      '  s.hardDirty = true;\n  if (leader === s.id) return lead(s);',
      'has followers that say that they are there, wait for it, and have no other vote in its term',
    ],
  ]),
];

export const STEERING_RULES: readonly RuleMutation[] = [
  ...OF_AUTOMATIC_MERGES,
  ...OF_THE_BRAKE,
  ...OF_THE_DISK,
  ...OF_HEALTH,
  ...OF_MASTERS,
  ...OF_FIRST_LEADERS,
];
