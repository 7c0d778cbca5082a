import { type Finding, violation } from '../../checkers/index.ts';

/** Turns a checker's verdict into a finding. Nothing if all is well. */
export function findingOf(
  property: string,
  verdict: { readonly result: 'ok' | 'violation' | 'undecided'; readonly explanation: string },
): readonly Finding[] {
  const { result, explanation } = verdict;
  return result === 'ok' ? [] : [{ result, property, detail: explanation }];
}

export function violations(property: string, details: Iterable<string>): readonly Finding[] {
  return [...details].map((detail) => violation(property, detail));
}
