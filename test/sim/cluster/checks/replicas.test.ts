import { ServiceError } from '@remora/base';
import { describe, expect, test } from 'vitest';
import { currentKey, historyKey, leaseKey } from '../../../../packages/dataserver/src/state/keys.ts';
import { failed } from '../../../../packages/dataserver/src/state/outcomes/outcome-codec.ts';
import { CONF, put, StateBed } from '../../../../packages/dataserver/test/support/state-bed.ts';
import { MasterState } from '../../../../packages/master/src/metadata/master-state.ts';
import { differences, masterSumOf, StateSums, sumOf } from './replicas.ts';

const VALUE = Buffer.from('value');

/** A replica that has put `a` three times and `b` once, and has compacted the first version of `a`. */
async function replica(): Promise<StateBed> {
  const bed = new StateBed();
  for (const key of ['a', 'a', 'a', 'b']) await bed.ok({ type: 'kv', op: put(key, VALUE.toString()) });
  await bed.ok({ type: 'compact', revision: 3 });
  return bed;
}

const sum = (nodeId: number, { engine, state }: StateBed, atRest = true) => sumOf({ nodeId, engine, state }, atRest);

describe('the sums of replicas', () => {
  test('are equal for equal states, from memory or from the store', async () => {
    const [one, other] = [await replica(), await replica()];
    await other.checkpoint();
    const sums = [await sum(1, one), await sum(2, other)];
    expect(differences(sums)).toBe('');
  });

  test('are not compared of replicas that were created by different memberships and have applied nothing', async () => {
    const sums = new StateSums();
    for (const [nodeId, confVersion] of [
      [1, 3],
      [2, 4],
      [3, 4],
    ] as const) {
      const bed = new StateBed();
      const { descriptor } = bed.state;
      bed.state.descriptor = { ...descriptor, epoch: { ...descriptor.epoch, confVersion } };
      sums.add(await sum(nodeId, bed, false));
    }
    expect(sums.compared).toBe(1);
  });

  test('no replica at all is a difference', () => expect(differences([])).toBe('there is no range'));

  const bad: readonly { readonly name: string; readonly change: (bed: StateBed) => void }[] = [
    { name: 'a value', change: ({ engine }) => engine.put(currentKey(Buffer.from('a')), Buffer.from('other')) },
    { name: 'a key that is gone', change: ({ engine }) => engine.delete(currentKey(Buffer.from('b'))) },
    { name: 'a lease too many', change: ({ engine }) => engine.put(leaseKey(7n), VALUE) },
    { name: 'an older version', change: ({ engine }) => engine.put(historyKey(Buffer.from('a'), 4), VALUE) },
    {
      name: 'the revision',
      change: ({ state }) => {
        state.revision++;
      },
    },
    {
      name: 'what is compacted',
      change: ({ state }) => {
        state.compactRevision--;
      },
    },
    {
      name: 'the membership',
      change: ({ state }) => {
        state.conf = { ...state.conf, voters: [1, 2] };
      },
    },
    {
      name: 'an outcome that may still be asked for',
      change: ({ state }) => {
        const outcome = failed(1, new ServiceError('INTERNAL', ''));
        state.outcomes.remember({ requestId: 'r', deadlineMs: state.rangeTimeMs, outcome }, 1);
      },
    },
  ];
  test.each(bad)('differ by $name, at rest and at work', async ({ change }) => {
    const [one, other] = [await replica(), await replica()];
    change(other);
    expect(differences([await sum(1, one), await sum(2, other)])).toContain('group 2: node 1');
    const sums = new StateSums();
    sums.add(await sum(1, one, false));
    const wrong = await sum(2, other, false);
    expect(() => sums.add(wrong)).toThrow('replicas agree: group 2');
  });

  test('are wrong where a range counts other keys than it has, unless its counts are estimates', async () => {
    const bed = await replica();
    bed.state.keys++;
    expect(differences([await sum(1, bed)])).toMatch(/it counts 3 keys of .* and has 2 of/);
    const wrong = await sum(1, bed, false);
    expect(() => new StateSums().add(wrong)).toThrow('keys are counted: group 2');
    bed.state.estimatedSince = 1;
    expect(differences([await sum(1, bed)])).toBe('');
  });

  test('differ at rest, not at work, by older versions that one has cleared up', async () => {
    const [one, other] = [await replica(), await replica()];
    other.engine.put(historyKey(Buffer.from('a'), 2), VALUE);
    expect(differences([await sum(1, one), await sum(2, other)])).not.toBe('');
    const sums = new StateSums();
    sums.add(await sum(1, one, false));
    sums.add(await sum(2, other, false));
    expect(sums.compared).toBe(1);
  });

  test('do not differ by outcomes that nobody can ask for any more', async () => {
    const [one, other] = [await replica(), await replica()];
    const outcome = failed(1, new ServiceError('INTERNAL', ''));
    other.state.outcomes.remember({ requestId: 'r', deadlineMs: other.state.rangeTimeMs - 1, outcome }, 1);
    expect(differences([await sum(1, one), await sum(2, other)])).toBe('');
  });

  test('at other positions are not compared at work, and are a difference at rest', async () => {
    const [one, other] = [await replica(), await replica()];
    await other.ok({ type: 'kv', op: put('c', 'more') });
    const sums = new StateSums();
    sums.add(await sum(1, one, false));
    sums.add(await sum(2, other, false));
    expect(sums.compared).toBe(0);
    expect(differences([await sum(1, one), await sum(2, other)])).not.toBe('');
  });
});

describe('the sums of masters', () => {
  const master = (...names: readonly string[]) => {
    const state = new MasterState(CONF);
    for (const name of names) {
      const addresses = { peerAddress: '', clientAddress: '', httpAddress: '' };
      const node = { nodeId: 0, name, incarnation: name, roles: ['data' as const], ...addresses, version: '' };
      state.apply({ type: 'registerNode', descriptor: node });
    }
    state.applied = { index: names.length, term: 1 };
    return state;
  };

  test('are equal for equal states, and differ by a node that is another', () => {
    expect(differences([masterSumOf(1, master('a', 'b')), masterSumOf(2, master('a', 'b'))])).toBe('');
    expect(differences([masterSumOf(1, master('a', 'b')), masterSumOf(2, master('a', 'c'))])).toContain('group 1');
    expect(differences([masterSumOf(1, master('a', 'b')), masterSumOf(2, master('b', 'a'))])).toContain('group 1');
  });
});
