/**
 * The common interface of all checks. A simulation or a run of real processes can use any of them: events go in as they
 * happen, and findings come out as soon as they are certain.
 *
 * C1. A check judges by its events alone, without a clock or randomness. The same events give the same findings.
 * C2. `observe` returns what this event breaks, and remembers enough to judge later events. `finish` returns what only
 *     the whole sequence can show; it is called once, after the last event. No finding is reported twice.
 * C3. A check that cannot decide reports `undecided`, which is not a pass.
 */

/** A broken promise, or (C3) one that a check cannot decide. */
export interface Finding {
  readonly result: 'violation' | 'undecided';
  /** The name of the promise. It is short and stays the same in all runs: `watch: complete`. */
  readonly property: string;
  /** For people: which facts contradict each other. */
  readonly detail: string;
}

export interface Check<Event> {
  readonly name: string;
  observe(event: Event): readonly Finding[];
  finish(): readonly Finding[];
}

/** No findings. The array is shared, because almost every event has this result. */
export const NOTHING: readonly Finding[] = Object.freeze([]);

export function violation(property: string, detail: string): Finding {
  return { result: 'violation', property, detail };
}

/** All findings of a check for a complete sequence of events. */
export function runCheck<Event>(check: Check<Event>, events: Iterable<Event>): readonly Finding[] {
  const found: Finding[] = [];
  for (const event of events) found.push(...check.observe(event));
  found.push(...check.finish());
  return found;
}
