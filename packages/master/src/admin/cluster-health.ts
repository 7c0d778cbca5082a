import type { Clock } from '@remora/base';
import { type CheckReport, CONDITIONS_TOLD_MAX, type HealthCondition, makesUnready } from '@remora/protocol';
import { findConditions } from './check.ts';
import { type Knowledge, nodeOverviews, rangeOverviews } from './overview.ts';

export interface ClusterHealthDeps {
  readonly clock: Clock;
  readonly knowledge: () => Knowledge;
  /** Voters that a range should have. */
  readonly replicas: () => number;
  /** Nodes that the first range needs. */
  readonly firstReplicas: number;
  /** A new leader has not heard from the node, and has not waited long enough for it. */
  readonly unheard: (nodeId: number) => boolean;
  /** What the scheduling finds. */
  readonly more: () => readonly HealthCondition[];
}

/** While nothing is critical, nodes are told what was found at most so long ago: to look takes time in a large cluster. */
const TOLD_AGAIN_MS = 1_000;

/** What the masters' leader finds wrong with the cluster: for operators who ask, and for all nodes with each heartbeat. */
export class ClusterHealth {
  readonly #deps: ClusterHealthDeps;
  #told: { readonly atMs: number; readonly conditions: readonly HealthCondition[] } | undefined;

  constructor(deps: ClusterHealthDeps) {
    this.#deps = deps;
  }

  /** Another leader knows other things. */
  termBegan(): void {
    this.#told = undefined;
  }

  report(): CheckReport {
    const { knowledge, replicas, firstReplicas, unheard, more } = this.#deps;
    const known = knowledge();
    const [nodes, ranges] = [nodeOverviews(known), rangeOverviews(known)];
    const heard = [...known.heard];
    const held = heard.flatMap(([nodeId, { heartbeat }]) => heartbeat.ranges.map((report) => ({ nodeId, report })));
    const reported = heard.flatMap(([node, { heartbeat }]) =>
      heartbeat.conditions.filter(({ nodeId }) => nodeId === node),
    );
    const conditions = findConditions({
      ...{ nodes, ranges, held, reported, firstReplicas, unheard },
      replicas: replicas(),
      mergedInto: known.mergedInto,
      more: more(),
    });
    return { nodes: nodes.length, ranges: ranges.length, conditions };
  }

  /** What makes nodes unready and the worst of the rest, for every node. */
  told(): readonly HealthCondition[] {
    const nowMs = this.#deps.clock.monotonicMs();
    const { atMs, conditions } = this.#told ?? { atMs: Number.NEGATIVE_INFINITY, conditions: [] };
    const isUrgent = conditions.some(({ severity, name }) => severity === 'critical' || name === 'notInformed');
    if (!isUrgent && nowMs - atMs < TOLD_AGAIN_MS) return conditions;
    const found = worthTelling(this.report().conditions);
    this.#told = { atMs: nowMs, conditions: found };
    return found;
  }
}

/**
 * At most `CONDITIONS_TOLD_MAX`, in their order. What makes a node unready is kept before all else: by it the other nodes
 * know whether any of them would serve better (HC3), and without it all of them could be unready at once.
 */
function worthTelling(conditions: readonly HealthCondition[]): readonly HealthCondition[] {
  if (conditions.length <= CONDITIONS_TOLD_MAX) return conditions;
  const isKept = (condition: HealthCondition): boolean => makesUnready(condition) !== undefined;
  const byNeed = [...conditions.filter(isKept), ...conditions.filter((condition) => !isKept(condition))];
  const told = new Set(byNeed.slice(0, CONDITIONS_TOLD_MAX));
  return conditions.filter((condition) => told.has(condition));
}
