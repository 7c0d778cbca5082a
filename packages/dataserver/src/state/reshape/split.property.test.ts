import { type Row, SeededRandom } from '@remora/base';
import { type Command, kvRoutingKey } from '@remora/protocol';
import { expect, test } from 'vitest';
import { DESCRIPTOR, del, put, range, StateBed } from '../../../test/support/state-bed.ts';
import { leaseKey } from '../keys.ts';
import { commandWithin } from '../request-bounds.ts';

const NAMES = ['a', 'b', 'b\0', 'ba', 'c', 'd', 'e', '\xff'];
const SPLITS_MAX = 4;

function command(random: SeededRandom): Command {
  const [one = 'a', other = 'a'] = [NAMES[random.int(NAMES.length)], NAMES[random.int(NAMES.length)]];
  const op = (): Exclude<ReturnType<typeof del>, { type: 'txn' }> => {
    const kind = random.int(6);
    const found = kind === 0 ? del(one, other) : kind === 1 ? range(one, other) : put(one, String(random.int(1_000)));
    if (found.type === 'txn') throw new Error('there are none here');
    return found;
  };
  switch (random.int(8)) {
    case 0:
      return { type: 'leaseGrant', id: BigInt(random.int(4)) + 1n, ttlMs: 5_000, attributes: {} };
    case 1:
      return { type: 'leaseRevoke', id: BigInt(random.int(4)) + 1n, incarnation: 0 };
    case 2:
      return { type: 'txn', txn: { compare: [], success: [op(), op()], failure: [] } };
    default:
      return { type: 'kv', op: op() };
  }
}

const PLACES = [leaseKey(3n), Buffer.from([3]), ...NAMES.map((name) => kvRoutingKey(Buffer.from(name)))];

/** A range that is never split, and one of the same commands that falls into more and more pieces. */
class Twins {
  readonly whole = new StateBed();
  readonly pieces: StateBed[] = [new StateBed()];
  executed = 0;

  async run(next: Command, request: { requestId: string; deadlineMs: number }): Promise<void> {
    const piece = this.pieces.find(({ state }) => commandWithin(state.bounds, next));
    if (piece === undefined) return;
    // The twin counts by itself, and so decides which revision the pieces are given.
    piece.block = { first: this.whole.state.revision + 1, count: 1 };
    const expected = await this.whole.run(next, request);
    const found = await piece.run(next, request);
    if (expected.ok) {
      expect(found).toMatchObject({ ok: true, result: expected.result });
      this.executed++;
    } else expect(found).toMatchObject({ ok: false, code: expected.code });
  }

  async split(random: SeededRandom): Promise<void> {
    const at = PLACES[random.int(PLACES.length)] ?? Buffer.from([3]);
    const piece = this.pieces.find(({ state }) => inside(state.bounds, at));
    if (piece === undefined) return;
    const { epoch, replicas } = piece.state.descriptor;
    const childId = 10 + this.pieces.length;
    const ids = replicas.map(({ nodeId }) => ({ nodeId, replicaId: 100 * childId + nodeId }));
    const outcome = await piece.run({ type: 'split', at, epoch, childId, replicas: ids, keys: 0, bytes: 0 });
    if (!outcome.ok) return; // it would part a lease from what it owns
    const start = piece.children.at(-1);
    if (start === undefined) throw new Error('a split makes a child');
    this.pieces.push(new StateBed({ engine: piece.engine, start }));
  }
}

function inside({ start, end }: { start: Uint8Array; end: Uint8Array }, at: Buffer): boolean {
  return Buffer.compare(start, at) < 0 && (end.length === 0 || Buffer.compare(at, end) < 0);
}

async function rowsOf(bed: StateBed): Promise<readonly Row[]> {
  const { routed, history } = bed.state.bounds;
  const older = history === undefined ? [] : await bed.engine.scan(history);
  return [...(await bed.engine.scan(routed)), ...older];
}

const byKey = (a: Row, b: Row): number => Buffer.compare(a.key, b.key);

test.each([1, 2, 3, 4, 5, 6, 7, 8])(
  'the pieces of a range come to what it would have come to whole (seed %i)',
  async (seed) => {
    const random = new SeededRandom(seed);
    const twins = new Twins();
    const recent: { command: Command; requestId: string; deadlineMs: number }[] = [];
    for (let i = 0; i < 400; i++) {
      const old = recent[random.int(20)];
      if (i % 25 === 24 && twins.pieces.length <= SPLITS_MAX) await twins.split(random);
      else if (old !== undefined && random.int(4) === 0)
        await twins.run(old.command, old); // a retry, perhaps of another life
      else {
        const item = { command: command(random), requestId: `r${i}`, deadlineMs: 100_000 };
        recent.unshift(item);
        await twins.run(item.command, item);
      }
    }
    const { whole, pieces } = twins;
    expect(pieces.length).toBeGreaterThan(2);
    expect(twins.executed).toBeGreaterThan(200);
    const rows = (await Promise.all(pieces.map(rowsOf))).flat().sort(byKey);
    expect(rows).toEqual([...(await rowsOf(whole))].sort(byKey));
    const epochs = pieces.map(({ state }) => state.descriptor.epoch.version);
    expect(Math.max(...epochs)).toBeGreaterThan(DESCRIPTOR.epoch.version);
    expect(pieces.map(({ state }) => state.leases.size).reduce((a, b) => a + b)).toBe(whole.state.leases.size);
  },
);
