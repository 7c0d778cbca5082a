/**
 * Transactions that write in one place, and read others at a revision at which the client has read them before. The
 * past does not change, whatever the versions of the entries are. In version 0.1 they may be refused as reads of the
 * future.
 */
import type { TxnAnswer } from 'remora';
import { Violation } from '../../common/violation.ts';
import type { ClientLife } from '../sdk-client.ts';
import type { World } from '../world.ts';
import { ask, think, withHands } from './ask.ts';
import type { MakeWorkload } from './workload.ts';

/** In several ranges, some of which change seldom. */
const KEYS = ['a/past', 'q/past', 's/past', 't/past'] as const;

export const pastReads: MakeWorkload = (world) => {
  let compared = 0;
  return {
    name: 'past reads',
    run: (life) =>
      withHands(world, 2, async () => {
        compared += await once(world, life);
        await think(world, life, 1);
      }),
    figures: () => ({ 'reads of the past compared': compared }),
    check() {},
  };
};

/** Returns how many reads were compared. */
async function once(world: World, life: ClientLife): Promise<number> {
  const { kv } = life.remora;
  const draw = (): string => KEYS[life.random.int(KEYS.length)] ?? KEYS[0];
  const put = draw();
  // In one range, or over several.
  const keys = life.random.int(2) === 0 ? [put] : [draw(), draw()];
  const seen = await ask({ world, life, what: 'read of now' }, () => kv.txn({ success: keys.map((get) => ({ get })) }));
  if (seen.type !== 'answer') return 0;
  const { revision, results } = seen.value;
  const reads = keys.map((get) => ({ get, revision }));
  const again = await ask(
    { world, life, what: 'read of the past' },
    () => kv.txn({ success: [{ put, value: life.name }, ...reads] }),
    ['FUTURE_REVISION', 'COMPACTED'],
  );
  if (again.type !== 'answer') return 0;
  const [before, after] = [results, again.value.results.slice(1)].map((each) => shown(each));
  if (before === after) return keys.length;
  const text = `${keys.join(' and ')} at revision ${revision} were ${before}, and later ${after}`;
  throw new Violation('the past does not change', text);
}

/** Leases are bigints. */
function shown(results: readonly TxnAnswer[]): string {
  return JSON.stringify(results, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
}
