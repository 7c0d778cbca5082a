import { type ConditionName, HEALTH_CONDITIONS, type HealthCondition, healthCondition } from '../health.ts';
import { asCount, asFields, asList, asText, invalid } from './check.ts';

/** A sentence or two. */
const TEXT_CHARACTERS_MAX = 2_000;

/** HC1: the name says its severity and its scope. */
export function encodeHealthCondition({ name, rangeId, nodeId, text }: HealthCondition): unknown[] {
  return [name, rangeId, nodeId, text];
}

export function decodeHealthCondition(raw: unknown): HealthCondition {
  const f = asFields(raw, 4, 'condition');
  const name = asText(f[0], 'condition.name');
  if (!isConditionName(name)) throw invalid('condition.name');
  const about = { rangeId: asCount(f[1], 'condition.rangeId'), nodeId: asCount(f[2], 'condition.nodeId') };
  const text = asText(f[3], 'condition.text');
  if (text.length > TEXT_CHARACTERS_MAX) throw invalid('condition.text');
  return healthCondition(name, about, text);
}

export function decodeHealthConditions(raw: unknown, max: number): HealthCondition[] {
  const conditions = asList(raw, 'conditions', decodeHealthCondition);
  if (conditions.length > max) throw invalid('conditions');
  return conditions;
}

function isConditionName(name: string): name is ConditionName {
  return Object.hasOwn(HEALTH_CONDITIONS, name);
}
