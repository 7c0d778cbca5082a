/**
 * How often gateways have to ask for the way to a range, per 1,000 requests of a client: warm, when nothing changes,
 * and in the seconds behind a split and behind the move of a leader. `routes` are questions to the masters where keys
 * are, `leaders` those to replicas who of them leads; all gateways together.
 *
 * Settings: ranges=8  writers=16  every=4 (ms from the beginning of a writer's put to that of its next)
 */
import { kvRoutingKey } from '@remora/protocol';
import { pause } from '../../../test/e2e/eventually.ts';
import type { CaseContext, CaseResult } from '../../raft/case.ts';
import { table } from '../../report.ts';
import { type Bed, changeRange, setting, transferLeader, withBed } from '../bed.ts';
import { Writers } from '../writers.ts';

const WARM_UP_MS = 3_000;

interface Counted {
  readonly when: string;
  readonly requests: number;
  readonly routes: number;
  readonly leaders: number;
}

export const SETTINGS = ['ranges', 'writers', 'every'];

export async function run(context: CaseContext): Promise<CaseResult> {
  const ranges = setting(context, 'ranges', 8);
  const counted = await withBed({ flags: { 'pre-split-count': String(ranges) } }, async (bed) => {
    const keys = Array.from({ length: setting(context, 'writers', 16) }, (_, i) => keyOf(i, ranges));
    const load = new Writers(bed.client, keys, setting(context, 'every', 4));
    try {
      await pause(WARM_UP_MS);
      return await countAll(context, bed, load);
    } finally {
      await load.stop();
    }
  });
  return { data: counted, text: render(counted), bars: [] };
}

async function countAll(context: CaseContext, bed: Bed, load: Writers): Promise<readonly Counted[]> {
  const { admin } = bed;
  const restMs = 1_000 * context.seconds;
  const counted: Counted[] = [];
  for (let i = 0; i < context.runs; i++) {
    counted.push(await count(bed, load, 'warm', () => pause(restMs)));
    const { items: ranges } = await admin.ranges().page();
    const range = ranges[i % ranges.length];
    if (range === undefined) throw new Error('there is a range');
    // Between two writers of the range, so that keys of both halves are written.
    const at = kvRoutingKey(Buffer.concat([range.start.subarray(1), Buffer.of(0x08)]));
    const split = async (): Promise<void> => {
      await changeRange(admin, range.id, { $case: 'split', value: { at } });
      await pause(restMs);
    };
    counted.push(await count(bed, load, 'a split', split));
    const transfer = async (): Promise<void> => {
      await transferLeader(bed, range.id);
      await pause(restMs);
    };
    counted.push(await count(bed, load, 'a leader that moves', transfer));
    context.progress(JSON.stringify(counted.slice(-3)));
  }
  return counted;
}

async function count(bed: Bed, load: Writers, when: string, work: () => Promise<unknown>): Promise<Counted> {
  const before = await lookupsOf(bed);
  const requestsBefore = load.done;
  await work();
  const after = await lookupsOf(bed);
  const requests = load.done - requestsBefore;
  return { when, requests, routes: after.routes - before.routes, leaders: after.leaders - before.leaders };
}

async function lookupsOf({ cluster }: Bed): Promise<{ readonly routes: number; readonly leaders: number }> {
  const all = await Promise.all(cluster.nodes.map((node) => node.metrics('remora_gateway_lookups_total')));
  const sum = (of: string) => all.reduce((total, counts) => total + (counts.get(`of="${of}"`) ?? 0), 0);
  return { routes: sum('routes'), leaders: sum('leaders') };
}

/** Every range has keys of several writers, with different third bytes. */
function keyOf(writer: number, ranges: number): Buffer {
  const key = Buffer.alloc(4);
  key.writeUInt16BE(Math.ceil(((writer % ranges) * 0x1_0000) / ranges));
  key.writeUInt8(0x10 * Math.floor(writer / ranges), 2);
  return key;
}

function render(counted: readonly Counted[]): string {
  const kinds = [...new Set(counted.map(({ when }) => when))];
  const rows = kinds.map((when) => {
    const some = counted.filter((one) => one.when === when);
    const sum = (value: (one: Counted) => number) => some.reduce((total, one) => total + value(one), 0);
    const per = (n: number) =>
      (
        (1_000 * n) /
        Math.max(
          1,
          sum((one) => one.requests),
        )
      ).toFixed(2);
    return [when, String(sum((one) => one.requests)), per(sum((one) => one.routes)), per(sum((one) => one.leaders))];
  });
  return table(['behind', 'requests', 'routes asked per 1,000', 'leaders asked per 1,000'], rows);
}
