/**
 * Checks when locks end that their holders do not release, by what holders know about their time. Times are of one
 * clock, and events come in its order.
 *
 * Promises:
 * E1. Kept: a lock is not granted before the time has passed for which its holder was certain to have it, plus its
 *     lock-delay.
 * E2. Bounded: the holder of a lock with a limited time does not rely on it any longer than that.
 */
import { type Check, type Finding, NOTHING, violation } from '../check.ts';

export type LapseEvent =
  | {
      readonly type: 'granted';
      readonly lock: string;
      readonly version: number;
      readonly atMs: number;
      /** The lock-delay. */
      readonly delayMs: number;
    }
  /**
   * The holder is certain to hold the lock until then. If `limitMs` is set, it may hold the lock no longer than that.
   */
  | {
      readonly type: 'vouched';
      readonly lock: string;
      readonly version: number;
      readonly atMs: number;
      readonly untilMs: number;
      readonly limitMs: number;
    }
  /** The lock is about to be released or broken: it may be free from now on. */
  | { readonly type: 'given'; readonly lock: string; readonly version: number };

interface Hold {
  readonly version: number;
  readonly delayMs: number;
  untilMs: number;
}

export class LapseCheck implements Check<LapseEvent> {
  readonly name = 'lapse';
  /** By lock: the holders that have not released it. */
  readonly #holds = new Map<string, Map<number, Hold>>();
  /** Grants of locks whose last holder had not released them. Then those of locks with a delay. */
  lapsed = 0;
  delayed = 0;

  observe(event: LapseEvent): readonly Finding[] {
    const holds = this.#holds.get(event.lock) ?? new Map<number, Hold>();
    this.#holds.set(event.lock, holds);
    switch (event.type) {
      case 'granted': {
        const found = this.#early(holds, event);
        const { version, delayMs } = event;
        holds.set(version, { version, delayMs, untilMs: 0 });
        return found;
      }
      case 'vouched': {
        const { lock, version, atMs, untilMs, limitMs } = event;
        const hold = holds.get(version);
        // What was certain stays certain, unless its holder agrees to less: then it says so before it asks. A holder
        // may report much later that nothing is certain any more.
        if (hold !== undefined) hold.untilMs = untilMs > atMs ? untilMs : Math.min(hold.untilMs, atMs);
        if (untilMs <= atMs || atMs <= limitMs) return NOTHING;
        return [
          violation(
            'lapse: bounded',
            `${lock} (version ${version}) is held at ${atMs}, and was to be until ${limitMs}`,
          ),
        ];
      }
      case 'given':
        holds.delete(event.version);
        return NOTHING;
    }
  }

  finish(): readonly Finding[] {
    return NOTHING;
  }

  /** E1. A client that learns late of an earlier grant does not affect the holds after that grant. */
  #early(holds: Map<number, Hold>, event: Extract<LapseEvent, { type: 'granted' }>): readonly Finding[] {
    const { lock, version, atMs } = event;
    const found: Finding[] = [];
    for (const hold of holds.values()) {
      if (hold.version >= version) continue;
      holds.delete(hold.version);
      this.lapsed++;
      if (hold.delayMs > 0) this.delayed++;
      const { untilMs, delayMs } = hold;
      if (atMs >= untilMs + delayMs) continue;
      const what = `${lock} was granted at ${atMs} with version ${version}`;
      const why = `${hold.version} was certain until ${untilMs}, with a delay of ${delayMs}`;
      found.push(violation('lapse: kept', `${what}, and ${why}`));
    }
    return found;
  }
}
