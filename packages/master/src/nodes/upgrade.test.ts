import { FIRST_VERSION, versionOf } from '@remora/base';
import type { NodeHeartbeat } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { CONF, descriptor } from '../../test/support/descriptor.ts';
import { MasterState } from '../metadata/master-state.ts';
import type { Liveness } from '../scheduling/cluster-model.ts';
import { Upgrade } from './upgrade.ts';

const SECOND = versionOf('0.2') ?? 0;
const THIRD = SECOND + 1;

/** Nodes with the highest versions that their builds write; undefined: this leader has not heard of the node. */
function bedOf(maxima: readonly (number | undefined)[], states: Readonly<Record<number, Liveness>> = {}) {
  const state = new MasterState(CONF);
  for (const i of maxima.keys()) state.apply({ type: 'registerNode', descriptor: descriptor(i + 1) });
  const heard = (nodeId: number): NodeHeartbeat | undefined => {
    const max = maxima[nodeId - 1];
    if (max === undefined) return undefined;
    return { versions: { min: Math.max(FIRST_VERSION, max - 1), max, inForce: FIRST_VERSION } } as NodeHeartbeat;
  };
  return { state, upgrade: new Upgrade({ state, heard, stateOf: (nodeId) => states[nodeId] ?? 'up' }) };
}

describe('a version comes into force (UP1)', () => {
  test('when every node is up and can write it', () => {
    const { upgrade } = bedOf([SECOND, SECOND, SECOND]);
    expect(upgrade.refusal(SECOND)).toBe(undefined);
    expect(upgrade.status()).toMatchObject({ inForce: FIRST_VERSION, newest: SECOND, blockers: [] });
  });

  test.each([
    {
      name: 'a node writes the earlier one only',
      bed: bedOf([SECOND, FIRST_VERSION, SECOND]),
      says: ['node 2 (n2) writes versions up to 0.1: install Remora 0.2 there'],
    },
    {
      name: 'a node is down, whatever it has reported before',
      bed: bedOf([SECOND, SECOND, SECOND], { 3: 'down' }),
      says: ['node 3 (n3) is down: start it with Remora 0.2, or remove it'],
    },
    {
      name: 'a node is silent',
      bed: bedOf([SECOND, SECOND, SECOND], { 1: 'suspect' }),
      says: ['node 1 (n1) is suspect: start it with Remora 0.2, or remove it'],
    },
    {
      name: 'the leader is new',
      bed: bedOf([SECOND, undefined, SECOND], { 2: 'suspect' }),
      says: ['node 2 (n2) has not reported to the new leader of the masters: try again in a moment'],
    },
  ])('not while $name', ({ bed: { upgrade }, says }) => {
    expect(upgrade.status().blockers).toEqual(says);
    expect(upgrade.refusal(SECOND)).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: `version 0.2 cannot come into force yet: ${says[0]}`,
    });
  });

  test('without a node that was removed', () => {
    const { state, upgrade } = bedOf([SECOND, SECOND, FIRST_VERSION], { 3: 'down' });
    state.apply({ type: 'setDuty', nodeId: 3, duty: 'removed', untilMs: 0 });
    expect(upgrade.refusal(SECOND)).toBe(undefined);
  });

  test('and never one below it', () => {
    const { state, upgrade } = bedOf([SECOND, SECOND, SECOND]);
    state.apply({ type: 'finalizeUpgrade', version: SECOND });
    expect(upgrade.refusal(FIRST_VERSION)?.message).toContain('never decreases');
    expect(upgrade.refusal(SECOND)).toBe(undefined);
    expect(() => state.apply({ type: 'finalizeUpgrade', version: FIRST_VERSION })).toThrow('never decreases');
    expect(upgrade.refusal(THIRD)?.message).toContain('install Remora 0.3');
  });
});

describe('a new cluster begins with the version that all can write (UP3)', () => {
  test.each([
    { maxima: [SECOND, SECOND, SECOND], begins: SECOND },
    { maxima: [SECOND, FIRST_VERSION, SECOND], begins: FIRST_VERSION },
    { maxima: [THIRD, SECOND], begins: SECOND },
    { maxima: [undefined], begins: FIRST_VERSION },
    { maxima: [], begins: FIRST_VERSION },
  ])('$maxima: $begins', ({ maxima, begins }) => {
    expect(bedOf(maxima).upgrade.founding()).toBe(begins);
  });
});

describe('conditions of an upgrade say', () => {
  const conditionsOf = ({ upgrade }: ReturnType<typeof bedOf>) =>
    upgrade.conditions().map(({ name, text }) => [name, text]);

  test('nothing while all nodes write the version in force', () => {
    expect(conditionsOf(bedOf([FIRST_VERSION, FIRST_VERSION]))).toEqual([]);
  });

  test('which nodes are behind', () => {
    const [[name, text] = []] = conditionsOf(bedOf([SECOND, FIRST_VERSION, undefined]));
    expect([name, text]).toEqual(['mixedVersions', expect.stringContaining('not yet n2, n3: install Remora 0.2')]);
  });

  test('to finalize', () => {
    const bed = bedOf([SECOND, SECOND]);
    const [[name, text] = []] = conditionsOf(bed);
    expect([name, text]).toEqual(['upgradeNotFinalized', expect.stringContaining('remora admin upgrade finalize')]);
    bed.state.apply({ type: 'finalizeUpgrade', version: SECOND });
    expect(conditionsOf(bed)).toEqual([]);
  });
});
