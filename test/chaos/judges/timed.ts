/** The events of a round for a check, in time order. */
import { type Check, type Finding, runCheck } from '../../checkers/index.ts';
import type { Operation, Round } from './evidence.ts';

export interface Timed<Event> {
  readonly t: number;
  readonly event: Event;
}

/** Passes all events to `check`. Events at the same moment keep their order. */
export function judgeTimed<Event>(check: Check<Event>, events: readonly Timed<Event>[]): readonly Finding[] {
  const sorted = events.toSorted((a, b) => a.t - b.t);
  return runCheck(
    check,
    sorted.map(({ event }) => event),
  );
}

/** The operations of one workload in a round, in that workload's form. */
export function operationsOf<Asked extends Operation>({ operations }: Round, w: Operation['w']): readonly Asked[] {
  return operations.filter((operation) => operation.w === w) as unknown as readonly Asked[];
}

/** The notes of one workload. */
export function notesOf<Noted>(
  { notes }: Round,
  w: Operation['w'],
): readonly { readonly t: number; readonly n: Noted }[] {
  return notes.filter((note) => note.w === w) as unknown as readonly { readonly t: number; readonly n: Noted }[];
}

/** Groups by owner, in time order. */
export function byOwner<Asked extends Operation & { readonly q: { readonly c: string } }>(
  asked: readonly Asked[],
): readonly (readonly Asked[])[] {
  const uses = new Map<string, Asked[]>();
  for (const each of asked) uses.set(each.q.c, [...(uses.get(each.q.c) ?? []), each]);
  return [...uses.values()].map((use) => use.toSorted((a, b) => a.t0 - b.t0));
}
