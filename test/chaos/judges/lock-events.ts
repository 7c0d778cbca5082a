/** The events by which locks are judged, in time order. */
import { type Finding, LockCheck, type LockEvent, runCheck } from '../../checkers/index.ts';

export interface TimedEvent {
  readonly t: number;
  readonly event: LockEvent;
}

/** The order of events at one moment: a request at the end of a use comes after that end. */
const ORDER: Readonly<Record<LockEvent['type'], number>> = {
  left: 0,
  gone: 1,
  capacity: 2,
  asked: 2,
  queued: 3,
  converting: 3,
  granted: 4,
  resumed: 4,
  accepted: 5,
};

export function judgeLockEvents(events: readonly TimedEvent[]): readonly Finding[] {
  const sorted = events.toSorted((a, b) => a.t - b.t || ORDER[a.event.type] - ORDER[b.event.type]);
  return runCheck(
    new LockCheck(),
    sorted.map(({ event }) => event),
  );
}
