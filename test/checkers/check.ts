/**
 * What all checks have in common, so that a simulation or a run of real processes plugs in any of them: events go in
 * as they happen, findings come out as soon as they are certain.
 *
 * C1. A check judges from its events alone: no clock, no chance. The same events give the same findings.
 * C2. `observe` answers with what this event breaks, and remembers enough to judge what comes; what only the whole can
 *     show comes from `finish`, which is called once, after the last event. Nothing is told twice.
 * C3. A check that cannot decide says so (`undecided`); that is no pass.
 */

/** A promise that was broken, or (C3) one of which a check cannot tell. */
export interface Finding {
  readonly result: 'violation' | 'undecided';
  /** Which promise, in a few words that stay the same from run to run: `watch: complete`. */
  readonly property: string;
  /** For people: what contradicts what. */
  readonly detail: string;
}

export interface Check<Event> {
  readonly name: string;
  observe(event: Event): readonly Finding[];
  finish(): readonly Finding[];
}

/** Nothing found: shared, as this is the answer to almost every event. */
export const NOTHING: readonly Finding[] = Object.freeze([]);

export function violation(property: string, detail: string): Finding {
  return { result: 'violation', property, detail };
}

/** All that a check finds in events that are there already. */
export function runCheck<Event>(check: Check<Event>, events: Iterable<Event>): readonly Finding[] {
  const found: Finding[] = [];
  for (const event of events) found.push(...check.observe(event));
  found.push(...check.finish());
  return found;
}
