import { confOf, forcedChange } from '@remora/raft';
import { describe, expect, test } from 'vitest';
import { DESCRIPTOR, put, StateBed } from '../../test/support/state-bed.ts';
import { encodeKnownEpoch } from './reshape/membership.ts';

const write = (key: string) => ({ type: 'kv' as const, op: put(key, 'v') });

/** A range with a write, whose first replica has gone on alone. */
async function alone(revisionSource: 'range' | 'master'): Promise<StateBed> {
  const bed = new StateBed({ descriptor: { ...DESCRIPTOR, revisionSource } });
  bed.block = { first: 100, count: 5 };
  await bed.ok(write('a'));
  const { state } = bed;
  const [first] = state.descriptor.replicas;
  const replicaId = first?.replicaId ?? 0;
  const position = { index: state.applied.index + 1, term: state.applied.term + 1 };
  const change = forcedChange(replicaId, encodeKnownEpoch({ confVersion: 8, version: 3 }));
  state.reconfigure(position, confOf([replicaId]), change);
  return bed;
}

describe('a range whose replica goes on alone', () => {
  test.each(['range', 'master'] as const)('writes far above all that can be lost (revisions by the %s)', async (by) => {
    const bed = await alone(by);
    const { revision } = bed.state;
    expect(revision).toBeGreaterThan(1_000_000_000_000);
    bed.block = { first: revision + 1, count: 5 };
    await bed.ok(write('b'));
    expect(bed.state.revision).toBe(revision + 1);
  });

  test('counts what was before as compacted: clients may have seen more of it', async () => {
    const { state } = await alone('range');
    expect(state.compactRevision).toBe(state.revision);
  });
});
