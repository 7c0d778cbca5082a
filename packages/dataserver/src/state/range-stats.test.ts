import { nodeClock } from '@remora/base';
import { type Command, kvRoutingKey } from '@remora/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DESCRIPTOR, del, put, StateBed } from '../../test/support/state-bed.ts';
import { countLive } from '../range/stats/size-sampler.ts';
import { decodeRangeMeta, encodeRangeMeta } from './meta-codec.ts';

const MIDDLE = 'm';
const KEYS = ['a', 'b', 'c', 'n', 'o', 'p', 'q'];

function kv(op: ReturnType<typeof put> | ReturnType<typeof del>): Command {
  if (op.type === 'txn') throw new Error('one operation');
  return { type: 'kv', op };
}

/** Split in the middle, with these numbers for what leaves. */
async function parts(
  filled: readonly string[],
  moved: { readonly keys: number; readonly bytes: number },
): Promise<{ left: StateBed; right: StateBed }> {
  const left = new StateBed();
  for (const key of filled) await left.ok(kv(put(key, 'value')));
  const at = kvRoutingKey(Buffer.from(MIDDLE));
  const { epoch } = DESCRIPTOR;
  await left.ok({ type: 'split', at, epoch, childId: 3, replicas: [{ nodeId: 1, replicaId: 31 }], ...moved });
  const [start] = left.children;
  if (start === undefined) throw new Error('a split makes a child');
  const right = new StateBed({ engine: left.engine, start });
  for (const bed of [left, right]) bed.block = { first: 100, count: 1_000_000 };
  return { left, right };
}

/** As a leader counts: what is to be added to what stands there now. */
async function counted({ engine, state }: StateBed): Promise<Command> {
  const { keys, bytes, descriptor, applied } = state;
  const live = await countLive(engine, descriptor, { clock: nodeClock(), stopped: () => false });
  if (live === undefined) throw new Error('nobody stopped it');
  const { version } = descriptor.epoch;
  return { type: 'recount', version, index: applied.index, keys: live.keys - keys, bytes: live.bytes - bytes };
}

const numbersOf = ({ state }: StateBed) => ({
  keys: state.keys,
  bytes: state.bytes,
  isEstimate: state.estimatedSince > 0,
});

describe('the keys of a range', () => {
  test('are estimates in both parts of a split until they are recomputed, also after a restart', async () => {
    const { left, right } = await parts(KEYS, { keys: 1, bytes: 7 });
    expect([numbersOf(left), numbersOf(right)]).toEqual([
      { keys: 6, bytes: 35, isEstimate: true },
      { keys: 1, bytes: 7, isEstimate: true },
    ]);
    for (const bed of [left, right]) {
      await bed.checkpoint();
      bed.crash();
      expect(numbersOf(bed).isEstimate).toBe(true);
      await bed.ok(await counted(bed));
      await bed.checkpoint();
      bed.crash();
    }
    expect([numbersOf(left), numbersOf(right)]).toEqual([
      { keys: 3, bytes: 18, isEstimate: false },
      { keys: 4, bytes: 24, isEstimate: false },
    ]);
  });

  test('are corrected in the range that was counted only', async () => {
    const { left } = await parts(KEYS, { keys: 1, bytes: 7 });
    const late = { ...(await counted(left)), version: 1 } as Command;
    expect(await left.run(late)).toMatchObject({ ok: false, code: 'STALE_EPOCH' });
    expect(numbersOf(left)).toEqual({ keys: 6, bytes: 35, isEstimate: true });
  });

  test('of a target are estimates when those of the source are', async () => {
    const { left, right } = await parts(KEYS, { keys: 1, bytes: 7 });
    left.neighbours = [right];
    await left.ok(await counted(left));
    expect(numbersOf(left).isEstimate).toBe(false);
    const result = await right.ok({
      type: 'seal',
      epoch: right.state.descriptor.epoch,
      into: { targetId: 2, round: 0 },
    });
    if (result.type !== 'seal') throw new Error('a seal is answered so');
    await left.ok({ type: 'merge', epoch: left.state.descriptor.epoch, round: 0, source: result.sealed });
    expect(numbersOf(left)).toEqual({ keys: 4, bytes: 25, isEstimate: true });
    await left.ok(await counted(left));
    expect(numbersOf(left)).toEqual({ keys: 7, bytes: 42, isEstimate: false });
  });

  test('are exact when they are not marked as estimates, whatever is written while they are recomputed (LN2, LN3)', async () => {
    const write = fc.tuple(fc.constantFrom(...KEYS.slice(3)), fc.option(fc.string({ maxLength: 4 })));
    const writes = fc.array(write, { maxLength: 8 });
    const few = fc.nat({ max: 40 });
    await fc.assert(
      fc.asyncProperty(writes, writes, few, few, async (before, meanwhile, keys, bytes) => {
        const { right } = await parts(KEYS, { keys, bytes });
        const run = async (some: typeof before): Promise<void> => {
          for (const [key, value] of some) await right.ok(kv(value === null ? del(key) : put(key, value)));
        };
        await run(before);
        for (let rounds = 0; right.state.estimatedSince > 0; rounds++) {
          expect(rounds).toBeLessThan(3); // what was lost below 0 is lost once
          const command = await counted(right);
          await run(meanwhile);
          await right.ok(command);
        }
        expect(await counted(right)).toMatchObject({ keys: 0, bytes: 0 });
      }),
      { numRuns: 300 },
    );
  });

  test('are stored with their mark, and with what is known of merges', async () => {
    const { left } = await parts(KEYS, { keys: 1, bytes: 7 });
    const rounds = [left.state.merging, { seal: undefined, round: 3, absorbed: [7] }];
    for (const merging of rounds) {
      for (const estimatedSince of [0, 9]) {
        left.state.merging = merging;
        left.state.estimatedSince = estimatedSince;
        expect(decodeRangeMeta(encodeRangeMeta(left.state))).toMatchObject({ merging, estimatedSince });
      }
    }
  });
});
