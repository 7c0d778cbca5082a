import type { FailedLookup } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { ClockDifference, MastersSilence } from '@remora/master';
import {
  type ClusterView,
  type ConditionName,
  HEALTH_CONDITIONS,
  type HealthCondition,
  healthCondition,
  type NodeDescriptor,
  type NodeRole,
  type NodeState,
  withoutKeys,
} from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { type CertificateExpiry, NodeHealth, type Readiness } from './health.ts';
import { conditionCounts } from './node-metrics.ts';

const MIB = 2 ** 20;
const ALL: readonly NodeRole[] = ['master', 'data', 'gateway'];

function node(nodeId: number, roles = ALL): NodeDescriptor {
  const addresses = { peerAddress: 'h:1', clientAddress: 'h:2', httpAddress: 'h:3' };
  return { nodeId, name: `n${nodeId}`, incarnation: 'i', roles, ...addresses, version: '1' };
}

/** Node 1 of three that founded a cluster; all three are up unless a test says otherwise. */
class Bed {
  readonly clock = new ManualClock();
  readonly states = new Map<number, NodeState>();
  roles = ALL;
  view = true;
  freeMib = 1_000;
  logHangs = false;
  certificates: readonly CertificateExpiry[] = [];
  lookups: readonly FailedLookup[] = [];
  difference: ClockDifference | undefined;
  answering: readonly number[] | undefined;
  silentMs = 5_000;
  readonly health: NodeHealth;

  constructor() {
    const names = ['n1', 'n2', 'n3'];
    const bed = this;
    this.health = new NodeHealth({
      ...{ clock: this.clock, nodeId: 1, name: 'n1', reserveBytes: 100 * MIB },
      founders: { clusterId: 'c', names, ownNodeId: 1 },
      cluster: {
        get view() {
          return bed.#view();
        },
        nodes: names.map((name, i) => ({ nodeId: i + 1, name, removed: false })),
        addresses: { next: (nodeId) => `h:${nodeId}` },
      },
      space: () => ({ capacityBytes: 2_000 * MIB, availableBytes: this.freeMib * MIB }),
      logHangs: () => this.logHangs,
      certificates: () => this.certificates,
      failedLookups: () => this.lookups,
      clockDifference: () => this.difference,
      mastersSilence: () => this.#silence(),
    });
  }

  #view(): ClusterView | undefined {
    if (!this.view) return undefined;
    const nodes = [1, 2, 3].map((nodeId) => ({
      descriptor: node(nodeId, this.roles),
      state: this.states.get(nodeId) ?? ('up' as const),
    }));
    return { clusterId: 'c', nodes, ranges: [], leaders: [], masterLeader: 1 };
  }

  #silence(): MastersSilence | undefined {
    if (this.answering === undefined) return undefined;
    return { sinceMs: this.clock.monotonicMs() - this.silentMs, answering: new Set(this.answering) };
  }

  get names(): readonly string[] {
    return this.health.conditions().map(({ name, own }) => (own ? `own ${name}` : name));
  }
}

const full = (nodeId: number) => healthCondition('diskReserve', { nodeId }, 'no room');
const notListed = healthCondition('notListed', {}, '5 more');
const draining = (nodeId: number) => healthCondition('draining', { nodeId }, 'it drains');

describe('a node is unready only where another one would serve better', () => {
  test.each<{ name: string; given: (bed: Bed) => void; ready: boolean; conditions: readonly string[] }>([
    { name: 'all is well', given: () => {}, ready: true, conditions: [] },
    {
      name: 'it has not heard the masters yet',
      given: (bed) => {
        bed.view = false;
      },
      ready: false,
      conditions: ['own starting'],
    },
    { name: 'it stops', given: ({ health }) => health.stopping(), ready: false, conditions: ['own stopping'] },
    {
      name: 'it stops, and is the only one',
      given: (bed) => {
        bed.states.set(2, 'down').set(3, 'down');
        bed.health.stopping();
      },
      ready: false,
      conditions: ['own stopping'],
    },
    {
      name: 'its disk has no room',
      given: (bed) => {
        bed.freeMib = 99;
      },
      ready: false,
      conditions: ['own diskReserve'],
    },
    {
      name: 'no disk has room',
      given: (bed) => {
        bed.freeMib = 99;
        bed.health.learn([full(1), full(2), full(3)]);
      },
      ready: true,
      conditions: ['own diskReserve', 'diskReserve', 'diskReserve'],
    },
    {
      name: 'full nodes are missing in the list',
      given: (bed) => {
        bed.freeMib = 99;
        bed.health.learn([full(1), notListed]);
      },
      ready: true,
      conditions: ['own diskReserve', 'notListed'],
    },
    {
      name: 'only ranges are missing in the list',
      given: (bed) => {
        bed.freeMib = 99;
        bed.health.learn([full(1), healthCondition('quorumLost', { rangeId: 1 }, 'range 1 is lost'), notListed]);
      },
      ready: false,
      conditions: ['own diskReserve', 'quorumLost', 'notListed'],
    },
    {
      name: 'its disk has no room, and what is known of the others is old, as no master answers',
      given: (bed) => {
        bed.freeMib = 99;
        bed.answering = [1];
      },
      ready: true,
      conditions: ['noMasters', 'own diskReserve'],
    },
    {
      name: 'its disk has no room while the masters elect a leader',
      given: (bed) => {
        bed.freeMib = 99;
        bed.answering = [1, 2, 3];
        bed.silentMs = 1_999;
      },
      ready: false,
      conditions: ['own diskReserve'],
    },
    {
      name: 'it stops while no master answers',
      given: (bed) => {
        bed.answering = [1];
        bed.health.stopping();
      },
      ready: false,
      conditions: ['noMasters', 'own stopping'],
    },
    {
      name: 'its disk has room again, which the masters do not know yet',
      given: ({ health }) => health.learn([full(1)]),
      ready: true,
      conditions: [],
    },
    {
      name: 'it drains',
      given: ({ health }) => health.learn([draining(1)]),
      ready: false,
      conditions: ['own draining'],
    },
    {
      name: 'it drains while the others are away or have no room',
      given: (bed) => {
        bed.states.set(2, 'suspect');
        bed.health.learn([draining(1), full(3)]);
      },
      ready: true,
      conditions: ['diskReserve', 'own draining'],
    },
    {
      name: 'another one drains',
      given: ({ health }) => health.learn([draining(2)]),
      ready: true,
      conditions: ['draining'],
    },
    {
      name: 'the others take no clients',
      given: (bed) => {
        bed.roles = ['master', 'data'];
        bed.health.learn([draining(1)]);
      },
      ready: true,
      conditions: ['own draining'],
    },
    {
      name: 'something is wrong with the cluster',
      given: (bed) => {
        bed.answering = [1];
        bed.logHangs = true;
        bed.health.learn([
          healthCondition('noLeader', { rangeId: 2 }, 'no leader'),
          healthCondition('noRanges', {}, 'no ranges'),
          healthCondition('quorumLost', { rangeId: 3 }, 'lost'),
        ]);
      },
      ready: true,
      conditions: ['noMasters', 'noLeader', 'noRanges', 'quorumLost', 'own logHangs'],
    },
  ])('$name', ({ given, ready, conditions }) => {
    const bed = new Bed();
    given(bed);
    const { reasons, ...readiness }: Readiness = bed.health.readiness();
    expect([readiness.ready, bed.names]).toEqual([ready, conditions]);
    expect(reasons.length === 0).toBe(ready);
  });
});

test('what a probe is shown names ranges and no keys; operators are told the keys (HC4)', () => {
  const bed = new Bed();
  const keys = 'the keys from kv "secret/a" to kv "secret/b"';
  bed.health.learn([
    healthCondition('hole', { rangeId: 7 }, `no range has ${keys}, beside range 6 and 7`),
    healthCondition('overlap', { rangeId: 9 }, `ranges 8 and 9 both have ${keys}`),
    healthCondition('noLeader', { rangeId: 2 }, 'no leader'),
  ]);
  const { conditions } = bed.health.readiness();
  expect(conditions.map(({ name, text }) => `${name}: ${text}`)).toEqual([
    'hole: no range has some keys, beside range 7; remora admin check names them',
    'overlap: range 9 and another one both have some keys; remora admin check names them',
    'noLeader: no leader',
  ]);
  expect(bed.health.conditions().filter(({ text }) => text.includes(keys))).toHaveLength(2);
});

test.each(Object.keys(HEALTH_CONDITIONS) as ConditionName[])(
  'all views show %s alike, as the masters tell it',
  (name) => {
    const bed = new Bed();
    bed.answering = [1];
    // Of another node: what this node finds itself has tests of its own.
    const found = healthCondition(name, { rangeId: 7, nodeId: 2 }, 'what is wrong');
    bed.health.learn([found]);
    const isShown = ({ text }: HealthCondition) => text === 'what is wrong' || text === withoutKeys(found).text;
    const [shown] = bed.health.conditions().filter(isShown);
    expect(shown).toEqual({ ...found, own: false });
    expect(bed.health.readiness().conditions.filter(isShown)).toEqual([{ ...withoutKeys(found), own: false }]);
    expect(bed.health.withoutMasters()?.conditions.filter(isShown)).toEqual([found]);
    bed.answering = undefined;
    expect(bed.health.completed({ nodes: 3, ranges: 1, conditions: [found] }).conditions).toEqual([found]);
    const counted = conditionCounts(bed.health.conditions()).filter(({ count }) => count > 0);
    expect(counted).toEqual([{ labels: [name, found.severity, 'no'], count: 1 }]);
    expect(found.advice).not.toBe('');
    expect(found.docs).toBe(`docs/reference/conditions.md#${name.toLowerCase()}`);
  },
);

describe('masters without a leader', () => {
  test.each<{ name: string; given: (bed: Bed) => void; text: string | undefined }>([
    {
      name: 'one of three founders, before any master was heard',
      given: (bed) => {
        bed.view = false;
        bed.answering = [1];
      },
      text: 'no leader of the masters has answered for 5s: 1 of 3 founders is up (n1); waiting for n2 (h:2), n3 (h:3)',
    },
    {
      name: 'two of three are gone from a cluster that was complete',
      given: (bed) => {
        bed.answering = [1];
      },
      text: 'no leader of the masters has answered for 5s: 1 of 3 masters is up (n1); waiting for n2 (h:2), n3 (h:3)',
    },
    {
      name: 'nobody answers this node',
      given: (bed) => {
        bed.answering = [];
      },
      text: 'no leader of the masters has answered for 5s: 0 of 3 masters are up; waiting for n1 (h:1), n2 (h:2), n3 (h:3)',
    },
    {
      name: 'all are there and cannot agree',
      given: (bed) => {
        bed.answering = [1, 2, 3];
      },
      text: 'no leader of the masters has answered for 5s: 3 of 3 masters are up (n1, n2, n3), but none of them leads',
    },
    {
      name: 'no longer than an election takes',
      given: (bed) => {
        bed.answering = [];
        bed.silentMs = 1_999;
      },
      text: undefined,
    },
  ])('are named: $name', ({ given, text }) => {
    const bed = new Bed();
    given(bed);
    expect(bed.health.conditions().find(({ name }) => name === 'noMasters')?.text).toBe(text);
    expect(bed.health.withoutMasters()?.conditions[0]?.text).toBe(text);
  });
});

test('what the masters answer is completed with what the node knows better', () => {
  const bed = new Bed();
  bed.freeMib = 7;
  const told = [healthCondition('noLeader', { rangeId: 2 }, 'no leader'), full(2), full(1)];
  const { conditions } = bed.health.completed({ nodes: 3, ranges: 1, conditions: told });
  expect(conditions.map(({ name, nodeId }) => [name, nodeId])).toEqual([
    ['diskReserve', 1],
    ['noLeader', 0],
    ['diskReserve', 2],
  ]);
  expect(conditions[0]?.text).toContain('the disk of node n1 has 7 MiB free, less than the reserve of 100 MiB');
});

test.each<{ days: number; says: string | undefined }>([
  { days: 30, says: undefined },
  { days: 14.5, says: undefined },
  {
    days: 13.5,
    says: 'the certificate of node n1 for other nodes expires in 13 days: replace the files of --tls-peer-cert',
  },
  {
    days: 1.5,
    says: 'the certificate of node n1 for other nodes expires in 1 day: replace the files of --tls-peer-cert',
  },
  { days: -0.5, says: 'the certificate of node n1 for other nodes has expired: replace the files of --tls-peer-cert' },
])(
  'a certificate with $days days left is reported, and an expired one sends clients elsewhere: $says',
  ({ days, says }) => {
    const bed = new Bed();
    bed.certificates = [{ purpose: 'peer', expiresMs: bed.clock.wallMs() + days * 86_400_000 }];
    const found = bed.health.own();
    expect(found.map(({ text }) => text)).toEqual(says === undefined ? [] : [says]);
    expect(found.map(({ name }) => name)).toEqual(
      says === undefined ? [] : [days < 0 ? 'certificateExpired' : 'certificateExpires'],
    );
    expect(bed.health.readiness().ready).toBe(days > 0); // The others can still be reached.
  },
);

test.each<{ name: string; given: Partial<Bed>; expect: readonly string[] }>([
  {
    name: 'a name that resolves nowhere',
    given: { lookups: [{ host: 'h', code: 'ENOTFOUND' }] },
    expect: ['addressUnresolved: node n1 cannot resolve h (ENOTFOUND), the address of n1, n2, n3'],
  },
  {
    name: 'many names that resolve nowhere',
    given: { lookups: [1, 2, 3, 4, 5, 6, 7].map((i) => ({ host: `h${i}`, code: 'ENOTFOUND' })) },
    expect: [
      'addressUnresolved: node n1 cannot resolve h1 (ENOTFOUND); h2 (ENOTFOUND); h3 (ENOTFOUND); h4 (ENOTFOUND); h5 (ENOTFOUND); and 2 more',
    ],
  },
  {
    name: 'a clock that is behind and slow',
    given: { difference: { leader: 2, aheadMs: -61_234, fasterPercent: -2.34 } },
    expect: [
      'clockAhead: the clock of node n1 shows 61.2 s less than the clock of n2, which leads the masters',
      'clockRate: the clock of node n1 runs 2.3 % slower than the clock of n2, which leads the masters',
    ],
  },
])('$name is a warning that leaves the node ready', ({ given, expect: expected }) => {
  const bed = Object.assign(new Bed(), given);
  expect(bed.health.own().map(({ name, text }) => `${name}: ${text}`)).toEqual(expected);
  expect(bed.health.readiness().ready).toBe(true);
});
