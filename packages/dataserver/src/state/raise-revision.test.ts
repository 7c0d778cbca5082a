import { kvRoutingKey } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { DESCRIPTOR, put, StateBed } from '../../test/support/state-bed.ts';

const raise = (to: number) => ({ type: 'raiseRevision' as const, to });
const write = (key: string) => ({ type: 'kv' as const, op: put(key, 'v') });

describe('raising revisions before a restore', () => {
  test('makes the next change higher, and everything before it compacted', async () => {
    const bed = new StateBed();
    await bed.ok(raise(1_000));
    expect(bed.state).toMatchObject({ revision: 1_000, compactRevision: 1_000 });
    await bed.ok(write('a'));
    expect(bed.state.revision).toBe(1_001);
  });

  test('never lowers them, and does no harm when it is done again', async () => {
    const bed = new StateBed();
    await bed.ok(raise(1_000));
    await bed.ok(raise(10));
    expect(bed.state).toMatchObject({ revision: 1_000, compactRevision: 1_000 });
  });

  test('is what the master has to number above', async () => {
    const bed = new StateBed({ descriptor: { ...DESCRIPTOR, revisionSource: 'master' } });
    await bed.ok(raise(1_000));
    bed.block = { first: 900, count: 50 };
    expect(await bed.run(write('a'))).toMatchObject({ ok: false, code: 'UNAVAILABLE' });
    bed.block = { first: 2_000, count: 50 };
    await bed.ok(write('a'));
    expect(bed.state.revision).toBe(2_000);
  });

  test('is refused by one of several ranges, though it is empty', async () => {
    const start = kvRoutingKey(Buffer.from('n'));
    for (const part of [{ end: start }, { start }]) {
      const bed = new StateBed({ descriptor: { ...DESCRIPTOR, ...part } });
      expect(await bed.run(raise(1_000))).toMatchObject({ ok: false, code: 'INVALID_ARGUMENT' });
      expect(bed.state.revision).toBeLessThan(1_000);
    }
  });

  test('is refused where there are keys or leases', async () => {
    const keys = new StateBed();
    await keys.ok(write('a'));
    const leases = new StateBed();
    await leases.ok({ type: 'leaseGrant', id: 7n, ttlMs: 1_000, attributes: {} });
    for (const bed of [keys, leases]) {
      expect(await bed.run(raise(1_000))).toMatchObject({ ok: false, code: 'INVALID_ARGUMENT' });
      expect(bed.state.revision).toBeLessThan(1_000);
    }
  });
});
