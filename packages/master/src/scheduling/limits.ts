/**
 * Limits on concurrent operators. A plan beyond a limit is refused with the reason and planned again later: nothing
 * queues. Balancing leaves one place per node to repairs, which may use all places.
 */

import type { OperatorKind } from './operator.ts';
import { InfluenceSum, type OperatorInfluence } from './operator-influence.ts';
import type { Settings } from './settings.ts';

const BALANCING: ReadonlySet<OperatorKind> = new Set([
  'place',
  'scatter',
  'merge',
  'balanceReplicas',
  'balanceLeaders',
]);

export function isBalancing(kind: OperatorKind): boolean {
  return BALANCING.has(kind);
}

/**
 * Whether operators of this kind leave a recently moved range alone, because they might undo an improvement. A merge
 * has waited for its quiet time, and follows directly after the move that brought the two ranges together.
 */
export function respectsRest(kind: OperatorKind): boolean {
  return kind !== 'scatter' && kind !== 'merge' && isBalancing(kind);
}

/** The number of replicas that a node may receive or send at a time for one kind of work. */
function placesFor(kind: OperatorKind, max: number): number {
  return isBalancing(kind) ? Math.max(1, max - 1) : max;
}

/** Why these plans may not be added to the running operators; undefined if they may. */
export function limitReached(
  influenceSum: InfluenceSum,
  influences: readonly OperatorInfluence[],
  settings: Settings,
): string | undefined {
  const wanted = new InfluenceSum();
  for (const influence of influences) wanted.add(influence);
  if (influenceSum.size + wanted.size > settings.operatorsMax)
    return `operators-max (${settings.operatorsMax}) is reached`;
  for (const [kind, count] of wanted.kinds.entries()) {
    const [name, max] = kindLimit(kind, settings);
    if (isBalancing(kind) && influenceSum.kinds.of(kind) + count > max)
      return `${name} (${max}) is reached for ${kind}`;
  }
  for (const influence of influences) {
    const full = nodeLimitReached(influenceSum, wanted, influence, settings);
    if (full !== undefined) return full;
  }
  return undefined;
}

function kindLimit(kind: OperatorKind, settings: Settings): readonly [name: string, max: number] {
  if (kind === 'merge') return ['merges-under-way-max', settings.mergesUnderWayMax];
  return ['balance-operators-max', settings.balanceOperatorsMax];
}

function nodeLimitReached(
  influenceSum: InfluenceSum,
  wanted: InfluenceSum,
  { kind, receives, sends, transfers }: OperatorInfluence,
  settings: Settings,
): string | undefined {
  const receivesMax = placesFor(kind, settings.receivesPerNodeMax);
  const receiver = receives.find((node) => influenceSum.receives.of(node) + wanted.receives.of(node) > receivesMax);
  if (receiver !== undefined)
    return `node ${receiver} is already receiving ${influenceSum.receives.of(receiver)} replicas`;
  const sendsMax = placesFor(kind, settings.sendsPerNodeMax);
  const sender = sends.find((node) => influenceSum.sends.of(node) + wanted.sends.of(node) > sendsMax);
  if (sender !== undefined) return `node ${sender} is already sending ${influenceSum.sends.of(sender)} replicas`;
  const leader = transfers.find(
    (node) => influenceSum.transfers.of(node) + wanted.transfers.of(node) > settings.transfersPerNodeMax,
  );
  if (leader !== undefined) return `node ${leader} is already taking over ${influenceSum.transfers.of(leader)} ranges`;
  return undefined;
}

/** Whether a node may receive one more replica. */
export function mayReceive(
  influenceSum: InfluenceSum,
  nodeId: number,
  kind: OperatorKind,
  settings: Settings,
): boolean {
  return influenceSum.receives.of(nodeId) < placesFor(kind, settings.receivesPerNodeMax);
}
