/**
 * Checks whether observers of an election receive the truth about the leader and its proclamations. `LockCheck` checks
 * that there is only one leader at a time, because an election is a lock. Events come in the order of real time.
 *
 * Promises:
 * Q1. One leader per version: everyone who learns of a leadership learns of the same leader.
 * Q2. In order: an observer receives leaderships in their order, and proclamations of a leader in their order. It never
 *     receives the same thing twice in a row.
 * Q3. Nobody receives something that no leader has said.
 * Q4. A query for the leader returns nothing older than what was certain when it was sent.
 */
import { type Check, type Finding, NOTHING, violation } from '../check.ts';

/** What a leader says, in order: `count` is 0 for what it said as a candidate. */
interface Said {
  readonly leader: string;
  readonly count: number;
}

/** A leadership, and the last thing that its leader said. */
export interface Told extends Said {
  readonly version: number;
}

export type ElectionEvent =
  /** The leader is about to say it: from now on others may receive it. */
  | ({ readonly type: 'says'; readonly election: string } & Said)
  /** The leader itself knows it: it was elected, or its proclamation was acknowledged. */
  | ({ readonly type: 'acknowledged'; readonly election: string } & Told)
  /** Undefined: there is no leader. */
  | {
      readonly type: 'observed';
      readonly election: string;
      readonly observer: string;
      readonly told: Told | undefined;
    }
  | { readonly type: 'asks'; readonly election: string; readonly asker: string }
  | { readonly type: 'answered'; readonly election: string; readonly asker: string; readonly told: Told | undefined };

interface Election {
  /** By leader: how many things it has said. */
  readonly said: Map<string, number>;
  readonly leaders: Map<number, string>;
  /** The newest one that is certain. */
  newest: Told | undefined;
  /** By observer: the last thing that it received. */
  readonly observers: Map<string, { readonly last: Told | undefined; readonly highest: Told | undefined }>;
  readonly asked: Map<string, Told | undefined>;
}

export class ElectionCheck implements Check<ElectionEvent> {
  readonly name = 'election';
  readonly #elections = new Map<string, Election>();

  observe(event: ElectionEvent): readonly Finding[] {
    const election = this.#election(event.election);
    switch (event.type) {
      case 'says':
        election.said.set(event.leader, Math.max(event.count, election.said.get(event.leader) ?? 0));
        return NOTHING;
      case 'acknowledged': {
        if (isBefore(election.newest, event)) election.newest = event;
        return untrue(election, event.election, event);
      }
      case 'observed':
        return [...untrue(election, event.election, event.told), ...outOfOrder(election, event)];
      case 'asks':
        election.asked.set(event.asker, election.newest);
        return NOTHING;
      case 'answered':
        return [...untrue(election, event.election, event.told), ...outOfDate(election, event)];
    }
  }

  finish(): readonly Finding[] {
    return NOTHING;
  }

  #election(name: string): Election {
    let election = this.#elections.get(name);
    if (election === undefined) {
      election = { said: new Map(), leaders: new Map(), newest: undefined, observers: new Map(), asked: new Map() };
      this.#elections.set(name, election);
    }
    return election;
  }
}

/** Q1, Q3. */
function untrue({ said, leaders }: Election, name: string, told: Told | undefined): readonly Finding[] {
  if (told === undefined) return NOTHING;
  const { leader, version, count } = told;
  const known = leaders.get(version) ?? leader;
  leaders.set(version, known);
  const found: Finding[] = [];
  if (known !== leader) {
    found.push(
      violation('election: one leader', `${leader} leads ${name} with version ${version}, and so does ${known}`),
    );
  }
  if (count > (said.get(leader) ?? -1)) {
    found.push(violation('election: nothing is made up', `${leader} has not said ${count} in ${name}`));
  }
  return found;
}

/** Q2. */
function outOfOrder(
  { observers }: Election,
  { election, observer, told }: Extract<ElectionEvent, { type: 'observed' }>,
): readonly Finding[] {
  const before = observers.get(observer);
  const highest = before?.highest;
  observers.set(observer, { last: told, highest: isBefore(highest, told) ? told : highest });
  const what = `${observer} was told ${textOf(told)} of ${election}`;
  if (before !== undefined && textOf(before.last) === textOf(told)) {
    return [violation('election: observed in order', `${what}, twice in a row`)];
  }
  if (told === undefined || !isBefore(told, highest)) return NOTHING;
  return [violation('election: observed in order', `${what}, after ${textOf(highest)}`)];
}

/** Q4. The answer that nobody leads can be true at any time: a leader may have been lost. */
function outOfDate(
  { asked }: Election,
  { election, asker, told }: Extract<ElectionEvent, { type: 'answered' }>,
): readonly Finding[] {
  const floor = asked.get(asker);
  asked.delete(asker);
  if (told === undefined || !isBefore(told, floor)) return NOTHING;
  const detail = `${asker} was told ${textOf(told)} of ${election}, when ${textOf(floor)} was certain`;
  return [violation('election: the present leader is told', detail)];
}

/** Undefined is before every leadership. */
function isBefore(a: Told | undefined, b: Told | undefined): boolean {
  if (b === undefined) return false;
  if (a === undefined) return true;
  return a.version < b.version || (a.version === b.version && a.count < b.count);
}

function textOf(told: Told | undefined): string {
  return told === undefined ? 'nobody' : `${told.leader} (version ${told.version}, said ${told.count})`;
}
