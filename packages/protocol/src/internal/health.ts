/**
 * What can be wrong with a cluster: one table of conditions, and one type that every view shows.
 *
 * HC1. A condition's severity and scope follow from its name alone, so all views agree on them.
 * HC2. `admin check`, `status`, the metrics and `/ready` show the same list (but HC4).
 *      docs/how-to/cluster/troubleshoot.md explains each name (packages/cli/src/node/health-docs.test.ts).
 * HC3. A condition makes a node unready only if it is the node's own and another node would serve better. What concerns
 *      the whole cluster makes no node unready: a load balancer would remove all of them.
 * HC4. Some texts name keys of clients. Probes may come from anywhere, so `/ready` shows these conditions without the
 *      keys.
 */
import { field, mapped, names, struct, textOf, uint } from '../schema/kinds.ts';
import type { Kind } from '../schema/shape.ts';

/** `critical`: clients are refused or kept waiting. `warning`: clients are served. `info`: an operator intends it. */
export type ConditionSeverity = 'critical' | 'warning' | 'info';

/** `node`: it concerns the node that `nodeId` names. `cluster`: it concerns keys or the whole cluster. */
export type ConditionScope = 'node' | 'cluster';

interface ConditionKind {
  readonly severity: ConditionSeverity;
  readonly scope: ConditionScope;
  /**
   * Whether the node whose own it is should get no clients. `unlessAlone`: if another node would serve better (HC3).
   */
  readonly unready?: 'always' | 'unlessAlone';
  /** The text without the keys that it names (HC4). */
  readonly withoutKeys?: (rangeId: number) => string;
}

export const HEALTH_CONDITIONS = {
  /** The node has not heard the masters since it started. */
  starting: { severity: 'info', scope: 'node', unready: 'always' },
  stopping: { severity: 'info', scope: 'node', unready: 'always' },
  /** Its duty is another than serving. */
  draining: { severity: 'info', scope: 'node', unready: 'unlessAlone' },
  /** Less is free than `--disk-reserve`. */
  diskReserve: { severity: 'critical', scope: 'node', unready: 'unlessAlone' },
  /** Its disk neither takes a write nor refuses it. */
  logHangs: { severity: 'warning', scope: 'node' },
  /** A certificate of the node expires soon, or has expired. */
  certificateExpires: { severity: 'warning', scope: 'node' },
  /** The node listens beyond loopback, and authentication is off. */
  authenticationOff: { severity: 'warning', scope: 'node' },
  /** The same, and `--insecure anonymous` allows it. */
  anonymousAllowed: { severity: 'info', scope: 'node' },
  silentNode: { severity: 'warning', scope: 'node' },
  /** No leader of the masters answers. */
  noMasters: { severity: 'critical', scope: 'cluster' },
  /** The masters' leader is new, and has not heard from all nodes. */
  notInformed: { severity: 'info', scope: 'cluster' },
  /** The masters told the node only a part of the list. */
  notListed: { severity: 'info', scope: 'cluster' },
  noRanges: { severity: 'critical', scope: 'cluster' },
  hole: {
    severity: 'critical',
    scope: 'cluster',
    withoutKeys: (rangeId) => `no range has some keys, beside range ${rangeId}; remora admin check names them`,
  },
  overlap: {
    severity: 'critical',
    scope: 'cluster',
    withoutKeys: (rangeId) => `range ${rangeId} and another one both have some keys; remora admin check names them`,
  },
  quorumLost: { severity: 'critical', scope: 'cluster' },
  noLeader: { severity: 'critical', scope: 'cluster' },
  underReplicated: { severity: 'warning', scope: 'cluster' },
  silentReplica: { severity: 'warning', scope: 'cluster' },
  /** A range is larger than it should be: its writes are slowed or refused. */
  rangeTooLarge: { severity: 'warning', scope: 'cluster' },
  learner: { severity: 'warning', scope: 'cluster' },
  joint: { severity: 'warning', scope: 'cluster' },
  /** Something is wrong with a range, and nothing can be done about it now. */
  stuck: { severity: 'warning', scope: 'cluster' },
  /** The replicas of a range could be further apart. */
  misplaced: { severity: 'warning', scope: 'cluster' },
  /** An operator makes no progress. */
  stuckOperator: { severity: 'warning', scope: 'cluster' },
  /** A node holds a replica that does not belong to its range any more. */
  orphan: { severity: 'warning', scope: 'cluster' },
} as const satisfies Record<string, ConditionKind>;

export type ConditionName = keyof typeof HEALTH_CONDITIONS;

/**
 * Most conditions that a node reports of itself, and most that the masters tell each node (`notListed` says how many
 * are missing).
 */
export const CONDITIONS_OF_NODE_MAX = 8;
export const CONDITIONS_TOLD_MAX = 100;

/** A problem. Some pass by themselves: while a range splits, moves or elects. */
export interface HealthCondition {
  readonly name: ConditionName;
  readonly severity: ConditionSeverity;
  readonly scope: ConditionScope;
  /** 0: it concerns no single range. */
  readonly rangeId: number;
  /** 0: it concerns no single node. */
  readonly nodeId: number;
  /** For people. */
  readonly text: string;
}

/** A sentence or two. */
const TEXT_CHARACTERS_MAX = 2_000;

/** Severity and scope do not travel (HC1). */
export const HealthCondition: Kind<HealthCondition> = mapped(
  struct('condition', {
    name: field(names('condition', Object.keys(HEALTH_CONDITIONS) as ConditionName[]), 'Which condition it is.'),
    rangeId: field(uint, 'The range that it concerns; 0: no single one.'),
    nodeId: field(uint, 'The node that it concerns; 0: no single one.'),
    text: field(textOf({ max: TEXT_CHARACTERS_MAX }), 'What is wrong, for people.'),
  }),
  ({ name, text, ...about }) => healthCondition(name, about, text),
  (condition) => condition,
);

/** HC1. */
export function healthCondition(
  name: ConditionName,
  about: { readonly rangeId?: number; readonly nodeId?: number },
  text: string,
): HealthCondition {
  const { severity, scope } = HEALTH_CONDITIONS[name];
  return { name, severity, scope, rangeId: about.rangeId ?? 0, nodeId: about.nodeId ?? 0, text };
}

/** The worst first; otherwise in their order. */
export function worstFirst(conditions: readonly HealthCondition[]): readonly HealthCondition[] {
  const of = (wanted: ConditionSeverity) => conditions.filter(({ severity }) => severity === wanted);
  return [...of('critical'), ...of('warning'), ...of('info')];
}

/** HC3. */
export function makesUnready({ name }: HealthCondition): 'always' | 'unlessAlone' | undefined {
  const kind: ConditionKind = HEALTH_CONDITIONS[name];
  return kind.unready;
}

/** HC4. */
export function withoutKeys<Condition extends HealthCondition>(condition: Condition): Condition {
  const kind: ConditionKind = HEALTH_CONDITIONS[condition.name];
  return kind.withoutKeys === undefined ? condition : { ...condition, text: kind.withoutKeys(condition.rangeId) };
}
