import { type ConfState, confOf } from '@remora/raft';
import { describe, expect, test } from 'vitest';
import type { OperationEnd } from '../workloads/workload.ts';
import { couldServe, isOverLimit, type PeerRefusalPolicy, tooFewAnswered } from './outages.ts';

const CLIENT = 50;

/** Three nodes with replicas 11 to 13 and gateways, and what is broken. */
function standing(broken: {
  readonly down?: readonly number[];
  readonly lost?: readonly number[];
  readonly cut?: readonly (readonly [number, number])[];
  readonly gateways?: readonly number[];
  readonly conf?: ConfState | undefined;
  readonly masters?: ConfState;
}): PeerRefusalPolicy {
  const { down = [], lost = [], cut = [], gateways = [1, 2, 3], masters } = broken;
  const conf = 'conf' in broken ? broken.conf : confOf([11, 12, 13]);
  const nodeOf = (replicaId: number) => (lost.includes(replicaId) ? undefined : replicaId - 10);
  return {
    groups: [conf, masters].flatMap((each) => (each === undefined ? [] : [{ conf: each, nodeOf }])),
    works: (id) => id > 0 && !down.includes(id),
    gateways,
    linked: (a, b) => !cut.some(([x, y]) => (x === a && y === b) || (x === b && y === a)),
  };
}

describe('whether a client could be served', () => {
  const served: readonly { readonly name: string; readonly now: PeerRefusalPolicy }[] = [
    { name: 'all is well', now: standing({}) },
    { name: 'one node is down', now: standing({ down: [1] }) },
    {
      name: 'one voter is cut off from the others',
      now: standing({
        cut: [
          [1, 2],
          [1, 3],
        ],
      }),
    },
    { name: 'a bridge: only one node reaches both others', now: standing({ cut: [[1, 3]] }) },
    {
      name: 'the client reaches one gateway, which reaches a leader',
      now: standing({
        cut: [
          [CLIENT, 1],
          [CLIENT, 2],
        ],
      }),
    },
    {
      name: 'a joint membership with a majority on each side',
      now: standing({ conf: { ...confOf([11, 12, 13]), votersOutgoing: [11, 12] } }),
    },
  ];
  test.each(served)('yes: $name', ({ now }) => expect(couldServe(now, CLIENT)).toBe(true));

  const out: readonly { readonly name: string; readonly now: PeerRefusalPolicy }[] = [
    { name: 'there is no range yet', now: standing({ conf: undefined }) },
    { name: 'of another group a majority is down', now: standing({ down: [4, 5], masters: confOf([13, 14, 15]) }) },
    { name: 'a majority is down', now: standing({ down: [1, 2] }) },
    { name: 'one node is down and the disk of another is lost', now: standing({ down: [1], lost: [12] }) },
    {
      name: 'nobody reaches anybody',
      now: standing({
        cut: [
          [1, 2],
          [1, 3],
          [2, 3],
        ],
      }),
    },
    {
      name: 'the client reaches no gateway',
      now: standing({
        cut: [
          [CLIENT, 1],
          [CLIENT, 2],
          [CLIENT, 3],
        ],
      }),
    },
    {
      name: 'the only gateway that it reaches is on the wrong side',
      now: standing({
        gateways: [1],
        cut: [
          [1, 2],
          [1, 3],
        ],
      }),
    },
    {
      name: 'a joint membership lacks a majority of one side',
      now: standing({ down: [1], conf: { ...confOf([11, 12, 13]), votersOutgoing: [11, 12] } }),
    },
  ];
  test.each(out)('no: $name', ({ now }) => expect(couldServe(now, CLIENT)).toBe(false));
});

const ends: readonly { readonly name: string; readonly end: OperationEnd; readonly limit: number }[] = [
  { name: 'nobody set a limit', end: { how: 'refused', code: 'RESOURCE_EXHAUSTED' }, limit: 0 },
  { name: 'it failed otherwise', end: { how: 'refused', code: 'UNAVAILABLE' }, limit: 10 },
  { name: 'it may have had an effect', end: { how: 'unknown', code: 'UNKNOWN_OUTCOME' }, limit: 10 },
  { name: 'it was answered', end: { how: 'done' }, limit: 10 },
];
test.each(ends)('a limit of requests is no excuse when $name', ({ end, limit }) => {
  expect(isOverLimit(end, { requestsPerSecondMax: limit })).toBe(false);
});

test('what is refused for a limit is left aside', () => {
  expect(isOverLimit({ how: 'refused', code: 'RESOURCE_EXHAUSTED' }, { requestsPerSecondMax: 10 })).toBe(true);
});

test('a run fails when fewer than 70 % of what could be served was, or nothing was asked', () => {
  expect(tooFewAnswered({ asked: 10, answered: 7 })).toBe('');
  expect(tooFewAnswered({ asked: 1000, answered: 699 })).toContain('of 1000 operations outside total outages 699');
  expect(tooFewAnswered({ asked: 0, answered: 0 })).not.toBe('');
});
