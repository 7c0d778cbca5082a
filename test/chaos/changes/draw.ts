/** Draws the next change of ranges. Undefined: no change of that kind is possible now. */
import { type Bytes, compareBytes, equalBytes, type Random } from '@remora/base';
import type { admin } from '@remora/protocol/remora';
import { cutsRound, drawCut, firstCuts } from './places.ts';
import type { ChangeKind, WantedChange } from './range-desk.ts';

/** The ranges and nodes to choose from. */
export interface Layout {
  readonly round: number;
  /** All ranges, in key order. */
  readonly ranges: readonly admin.Range[];
  /** Nodes that store data. */
  readonly stores: readonly number[];
  isFree(range: admin.Range): boolean;
}

/** With more ranges than this they are only merged; with fewer they are only split. */
const RANGES_MAX = 30;
const RANGES_MIN = 3;
/** One move in this many does not bring neighbours together. */
const BESIDE = 4;

export function drawChange(kind: ChangeKind, layout: Layout, random: Random): WantedChange | undefined {
  switch (kind) {
    case 'split':
      return drawSplit(layout, random);
    case 'merge':
      return drawMerge(layout, random);
    case 'move':
      return drawMove(layout, random);
    case 'transfer':
      return drawTransfer(layout, random);
  }
}

function drawSplit(layout: Layout, random: Random): WantedChange | undefined {
  if (layout.ranges.length >= RANGES_MAX) return undefined;
  const at = Buffer.from(missingCut(layout, random) ?? drawCut(layout.round, random));
  const range = layout.ranges.findLast(({ start }) => compareBytes(start, at) <= 0);
  if (range === undefined || equalBytes(range.start, at) || !layout.isFree(range)) return undefined;
  return { kind: 'split', range, how: { $case: 'split', value: { at } } };
}

/** A split that the next round needs at its start. Undefined: it has all of them, or it is another kind's turn. */
function missingCut({ ranges, round }: Layout, random: Random): Bytes | undefined {
  const missing = firstCuts(round + 1).filter((cut) => !ranges.some(({ start }) => equalBytes(start, cut)));
  return random.int(2) === 0 ? drawOf(missing, random) : undefined;
}

/** Neighbours must be on the same nodes. If no neighbours are, `drawMove` brings some together. */
function drawMerge(layout: Layout, random: Random): WantedChange | undefined {
  if (layout.ranges.length <= RANGES_MIN) return undefined;
  const together = neighboursOf(layout).filter(([one, other]) => apart(one, other).length === 0);
  const inUse = together.filter(([, { start }]) => cutsRound(start, layout.round));
  const pair = drawOf(inUse.length > 0 && random.int(2) === 0 ? inUse : together, random);
  if (pair === undefined) return undefined;
  const [range, other] = pair;
  return { kind: 'merge', range, other, how: { $case: 'merge', value: { source: BigInt(other.id) } } };
}

function drawMove(layout: Layout, random: Random): WantedChange | undefined {
  const near = neighboursOf(layout).filter(([one, other]) => apart(one, other).length === 1);
  const pair = random.int(BESIDE) === 0 ? undefined : drawOf(near, random);
  if (pair !== undefined) {
    const [one, other] = pair;
    return moveOf(other, { from: apart(other, one)[0], to: apart(one, other)[0] });
  }
  const range = drawOf(layout.ranges.filter(layout.isFree), random);
  if (range === undefined) return undefined;
  const on = nodesOf(range);
  const free = layout.stores.filter((node) => !on.includes(node));
  return moveOf(range, { from: drawOf(on, random), to: drawOf(free, random) });
}

function moveOf(
  range: admin.Range,
  { from, to }: { readonly from: number | undefined; readonly to: number | undefined },
): WantedChange | undefined {
  if (from === undefined || to === undefined) return undefined;
  const how = { $case: 'move', value: { fromNode: BigInt(from), toNode: BigInt(to) } } as const;
  return { kind: 'move', range, how };
}

function drawTransfer(layout: Layout, random: Random): WantedChange | undefined {
  const range = drawOf(layout.ranges.filter(layout.isFree), random);
  if (range === undefined) return undefined;
  const toNode = drawOf(
    nodesOf(range).filter((node) => node !== range.leaderNode),
    random,
  );
  if (toNode === undefined) return undefined;
  return { kind: 'transfer', range, how: { $case: 'transfer', value: { toNode: BigInt(toNode) } } };
}

function neighboursOf({ ranges, isFree }: Layout): readonly (readonly [admin.Range, admin.Range])[] {
  return ranges.flatMap((one, i) => {
    const other = ranges[i + 1];
    return other !== undefined && isFree(one) && isFree(other) ? [[one, other] as const] : [];
  });
}

/** Nodes that have a replica of one range and none of the other. */
function apart(one: admin.Range, other: admin.Range): readonly number[] {
  const others = nodesOf(other);
  return nodesOf(one).filter((node) => !others.includes(node));
}

function nodesOf({ replicas }: admin.Range): readonly number[] {
  return replicas.flatMap(({ nodeId, type }) => (type === 'voter' ? [nodeId] : []));
}

function drawOf<T>(all: readonly T[], random: Random): T | undefined {
  return all.length === 0 ? undefined : all[random.int(all.length)];
}
