import type { Clock } from '@remora/base';
import {
  type CheckReport,
  CONDITIONS_TOLD_MAX,
  type HealthCondition,
  healthCondition,
  makesUnready,
  type NodeOverview,
  type RangeOverview,
} from '@remora/protocol';
import { findConditions, replicasBehind } from './check.ts';
import { type Knowledge, nodeOverviews, rangeOverviews } from './overview.ts';

export interface ClusterHealthDeps {
  readonly clock: Clock;
  readonly knowledge: () => Knowledge;
  /** The wanted number of voters of a range. */
  readonly replicas: () => number;
  /** The number of nodes that the first range needs. */
  readonly firstReplicas: number;
  /** A new leader has not heard from the node, and has not waited long enough for it. */
  readonly unheard: (nodeId: number) => boolean;
  /** Problems that the scheduling found. */
  readonly more: () => readonly HealthCondition[];
}

/** While nothing is critical, nodes get findings of up to this age. */
const TOLD_AGAIN_MS = 1_000;
/** In a large cluster they may be older: checks take at most this share of the time. */
const CHECKS_SHARE = 0.01;
/** They are never older than this. */
const TOLD_AGAIN_MS_MAX = 10_000;

/**
 * The problems that the masters' leader finds: for administrators on request, and for all nodes with each heartbeat.
 */
export class ClusterHealth {
  readonly #deps: ClusterHealthDeps;
  #found: Found | undefined;
  /** Since when each range has had no leader. */
  #leaderless: ReadonlyMap<number, number> = new Map();
  /** Since when each replica has been behind its leader. */
  #behind: ReadonlyMap<number, number> = new Map();

  constructor(deps: ClusterHealthDeps) {
    this.#deps = deps;
  }

  /** A new leader has other information. */
  termBegan(): void {
    this.#found = undefined;
    this.#leaderless = new Map();
    this.#behind = new Map();
  }

  report(): CheckReport {
    const { clock, knowledge, replicas, firstReplicas, unheard, more } = this.#deps;
    const nowMs = clock.monotonicMs();
    const known = knowledge();
    const [nodes, ranges] = [nodeOverviews(known), rangeOverviews(known)];
    this.#leaderless = leaderlessSince(this.#leaderless, ranges, nodes, nowMs);
    this.#behind = behindSince(this.#behind, ranges, nowMs);
    const heard = [...known.heard];
    const held = heard.flatMap(([nodeId, { heartbeat }]) => heartbeat.ranges.map((report) => ({ nodeId, report })));
    const reported = heard.flatMap(([node, { heartbeat }]) =>
      heartbeat.conditions.filter(({ nodeId }) => nodeId === node),
    );
    const conditions = findConditions({
      ...{ nodes, ranges, held, reported, firstReplicas, unheard },
      replicas: replicas(),
      leaderlessMs: (rangeId) => nowMs - (this.#leaderless.get(rangeId) ?? nowMs),
      behindMs: (replicaId) => nowMs - (this.#behind.get(replicaId) ?? nowMs),
      mergedInto: known.mergedInto,
      isRestoring: known.isRestoring,
      more: more(),
    });
    return { nodes: nodes.length, ranges: ranges.length, conditions };
  }

  /** The problems that are sent to a node: those that make nodes unready, its own first, and the worst of the rest. */
  told(nodeId: number): readonly HealthCondition[] {
    const nowMs = this.#deps.clock.monotonicMs();
    const last = this.#found;
    if (last !== undefined && !last.isUrgent && nowMs < last.againAtMs) return worthTelling(last, nodeId);
    const { conditions } = this.report();
    const tookMs = this.#deps.clock.monotonicMs() - nowMs;
    const restsMs = Math.min(TOLD_AGAIN_MS_MAX, Math.max(TOLD_AGAIN_MS, tookMs / CHECKS_SHARE));
    const found = foundIn(conditions, nowMs + restsMs);
    this.#found = found;
    return worthTelling(found, nodeId);
  }
}

/** `before` is what the last check found; nodes that are told of problems cause one every second. */
function leaderlessSince(
  before: ReadonlyMap<number, number>,
  ranges: readonly RangeOverview[],
  nodes: readonly NodeOverview[],
  nowMs: number,
): ReadonlyMap<number, number> {
  const up = new Set(nodes.filter(({ state }) => state === 'up').map(({ descriptor }) => descriptor.nodeId));
  const leaderless = ranges.filter(({ leaderNode }) => !up.has(leaderNode));
  return new Map(leaderless.map(({ descriptor: { rangeId } }) => [rangeId, before.get(rangeId) ?? nowMs]));
}

function behindSince(
  before: ReadonlyMap<number, number>,
  ranges: readonly RangeOverview[],
  nowMs: number,
): ReadonlyMap<number, number> {
  const behind = ranges.flatMap(replicasBehind);
  return new Map(behind.map(({ replicaId }) => [replicaId, before.get(replicaId) ?? nowMs]));
}

interface Found {
  /** When the next check is due. */
  readonly againAtMs: number;
  /** The cluster may become usable at any moment. */
  readonly isUrgent: boolean;
  readonly count: number;
  /** All problems that make nodes unready, and as many of the others as may be sent; in their order. */
  readonly worst: readonly HealthCondition[];
}

function foundIn(conditions: readonly HealthCondition[], againAtMs: number): Found {
  const isUrgent = conditions.some(({ severity, name }) => severity === 'critical' || name === 'notInformed');
  let others = 0;
  const worst = conditions.filter((each) => makesUnready(each) !== undefined || others++ < CONDITIONS_TOLD_MAX);
  return { againAtMs, isUrgent, count: conditions.length, worst };
}

/**
 * At most `CONDITIONS_TOLD_MAX` problems, in their order; if these are not all, the last one says how many are missing.
 * Problems that make this node unready are kept first, then those that make other nodes unready. With these the node
 * knows whether another node would serve better (HC3); otherwise all nodes could become unready at once.
 */
function worthTelling({ worst, count }: Found, nodeId: number): readonly HealthCondition[] {
  if (count <= CONDITIONS_TOLD_MAX) return worst;
  const need = (condition: HealthCondition): number =>
    makesUnready(condition) === undefined ? 2 : condition.nodeId === nodeId ? 0 : 1;
  const byNeed = [0, 1, 2].flatMap((wanted) => worst.filter((each) => need(each) === wanted));
  const kept = new Set(byNeed.slice(0, CONDITIONS_TOLD_MAX - 1));
  const text = `${count - kept.size} more conditions are not listed here; run: remora admin check`;
  return [...worst.filter((each) => kept.has(each)), healthCondition('notListed', {}, text)];
}
