/**
 * A problem of a cluster, in the one form that every view shows. `conditions.ts` has the table of all.
 *
 * HC1. A condition's severity, scope and advice follow from its name alone, so all views agree on them.
 * HC2. `admin check`, `status`, the metrics and `/ready` show the same list (but HC4).
 * HC3. A condition makes a node unready only if it is the node's own and another node would serve better. What concerns
 *      the whole cluster makes no node unready: a load balancer would remove all of them.
 * HC4. Some texts name keys of clients. Probes may come from anywhere, so `/ready` shows these conditions without the
 *      keys.
 * HC5. Nodes of two releases work together, so a node may be told a condition that its release does not know. It keeps
 *      the text, under the name `ofNewerRelease`.
 */
import { field, mapped, struct, textOf, uint } from '../../schema/kinds.ts';
import type { Kind } from '../../schema/shape.ts';
import {
  type ConditionName,
  type ConditionScope,
  type ConditionSeverity,
  HEALTH_CONDITIONS,
  type HealthConditionKind,
} from './conditions.ts';

/**
 * Most conditions that a node reports of itself, and most that the masters tell each node (`notListed` says how many
 * are missing).
 */
export const CONDITIONS_OF_NODE_MAX = 16;
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
  /** What is wrong, for people. */
  readonly text: string;
  /** What to do about it, for people. */
  readonly advice: string;
  /** Where the documentation explains it: a path in the repository, with the name as its id. */
  readonly docs: string;
}

/** The page that `npm run docs` writes from the table. */
export const CONDITIONS_PAGE = 'docs/reference/conditions.md';

/** A sentence or two. */
const TEXT_CHARACTERS_MAX = 2_000;

/** Longer than any name. */
const NAME_CHARACTERS_MAX = 64;

/** Only the name travels; what follows from it does not (HC1). */
export const HealthCondition: Kind<HealthCondition> = mapped(
  struct('condition', {
    name: field(textOf({ max: NAME_CHARACTERS_MAX }), 'Which condition it is.'),
    rangeId: field(uint, 'The range that it concerns; 0: no single one.'),
    nodeId: field(uint, 'The node that it concerns; 0: no single one.'),
    text: field(textOf({ max: TEXT_CHARACTERS_MAX }), 'What is wrong, for people.'),
  }),
  ({ name, text, ...about }) => healthCondition(isKnown(name) ? name : 'ofNewerRelease', about, text), // HC5
  (condition) => condition,
);

function isKnown(name: string): name is ConditionName {
  return Object.hasOwn(HEALTH_CONDITIONS, name);
}

/** HC1. */
export function healthCondition(
  name: ConditionName,
  about: { readonly rangeId?: number; readonly nodeId?: number },
  text: string,
): HealthCondition {
  const { severity, scope, advice } = HEALTH_CONDITIONS[name];
  const { rangeId = 0, nodeId = 0 } = about;
  return { name, severity, scope, rangeId, nodeId, text, advice, docs: `${CONDITIONS_PAGE}#${name.toLowerCase()}` };
}

/**
 * The worst first; among equals, nodes that are silent come before what follows from their silence. Otherwise in their
 * order.
 */
export function worstFirst(conditions: readonly HealthCondition[]): readonly HealthCondition[] {
  const of = (wanted: ConditionSeverity) => {
    const equals = conditions.filter(({ severity }) => severity === wanted);
    return [...equals.filter(isCause), ...equals.filter((condition) => !isCause(condition))];
  };
  return [...of('critical'), ...of('warning'), ...of('info')];
}

function isCause({ name }: HealthCondition): boolean {
  return name === 'silentNode' || name === 'noMasters';
}

/** HC3. */
export function makesUnready({ name }: HealthCondition): 'always' | 'unlessAlone' | undefined {
  const kind: HealthConditionKind = HEALTH_CONDITIONS[name];
  return kind.unready;
}

/** HC4. */
export function withoutKeys<Condition extends HealthCondition>(condition: Condition): Condition {
  const kind: HealthConditionKind = HEALTH_CONDITIONS[condition.name];
  return kind.withoutKeys === undefined ? condition : { ...condition, text: kind.withoutKeys(condition.rangeId) };
}
