/** Entries that wait for some followers. */
import { CORE, HOST, type RuleRow } from './rule-row.ts';

export const THRIFT_ROWS: readonly RuleRow[] = [
  [
    'waiting-entries-stay',
    'entries wait on while others come behind them',
    `${CORE}leader.ts`,
    `  releaseWaiting(s); // T3\n`,
    '',
    'thrift-rules.test.ts',
    'design §4: leave at the next tick, whatever follows them',
  ],
  [
    'silent-follower-counted-on',
    'entries wait although who is counted on has not acknowledged what was sent before',
    `${CORE}thrifty-replication.ts`,
    `s.matchOf(id) >= decidedTo && takesEntries(s, id)`,
    `takesEntries(s, id)`,
    'thrift-rules.test.ts',
    'design §4: wait for one entry only in vain for a follower that has fallen silent',
  ],
  [
    'old-quorum-counted-on',
    'a quorum of the configuration before is counted on',
    `${CORE}membership/reconfigure.ts`,
    `  s.thrift.forget(); // T1\n`,
    '',
    'thrift-rules.test.ts',
    'design §4: do so only for a quorum of the present configuration',
  ],
  [
    'waiting-entries-not-reviewed',
    'nobody looks at entries that wait',
    `${HOST}waiting-appends.ts`,
    `    if (this.#timer === undefined) this.#arm();\n`,
    '',
    'thrift-rules.test.ts',
    'design §5: leave within two reviews of the host when nothing follows them',
  ],
];
