/**
 * When locks end that their holders do not give back, by what holders know of their time. Times are of one clock, and
 * events come in its order.
 *
 * Promises:
 * E1. Kept: nobody is granted a lock before the time has passed for which its holder was certain to have it, and its
 *     lock-delay after that.
 * E2. Bounded: who holds a lock for a limited time does not rely on it any longer.
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
  /** It is certain to hold the lock until then, whatever happens; as `limitMs` says, it may for no longer than that. */
  | {
      readonly type: 'vouched';
      readonly lock: string;
      readonly version: number;
      readonly atMs: number;
      readonly untilMs: number;
      readonly limitMs: number;
    }
  /** It is about to be given back, or taken away: it may be free from now on. */
  | { readonly type: 'given'; readonly lock: string; readonly version: number };

interface Hold {
  readonly version: number;
  readonly delayMs: number;
  untilMs: number;
}

export class LapseCheck implements Check<LapseEvent> {
  readonly name = 'lapse';
  /** By lock: those who have not given it back. */
  readonly #holds = new Map<string, Map<number, Hold>>();
  /** Grants of locks whose last holder had not given them back; of these, of locks with a delay. */
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
        // What was certain once stays so, unless its holder agrees to less: then it says so before it asks.
        // Who says that nothing is certain any more, may say it long after it ended.
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

  /** E1. Those who are told late of an earlier grant have nothing to do with the holds that came after it. */
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
