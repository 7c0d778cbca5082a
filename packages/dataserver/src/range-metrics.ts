import { type Counter, type Histogram, LATENCY_BUCKETS_SECONDS, type Metrics } from '@remora/base';
import type { GrantEnd, HoldMode, LockResult, RefusalCode, Waiter } from '@remora/lock';
import type { Limit, RangeMeter, SessionEnd } from './state/effects.ts';

/** Grants are held between milliseconds and days. */
const HOLD_BUCKETS_SECONDS: readonly number[] = [
  0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 1_800, 7_200, 86_400,
];
const WAIT_BUCKETS_SECONDS: readonly number[] = [...LATENCY_BUCKETS_SECONDS, 30, 60, 300];
const PLACE_BUCKETS: readonly number[] = [1, 2, 5, 10, 25, 50, 100, 250, 1_000, 10_000];

/** How a lock is held or waited for; the values of a label. */
const KINDS = { exclusive: 'exclusive', shared: 'shared', permits: 'semaphore', upgrade: 'upgrade' } as const;
type Kind = (typeof KINDS)[keyof typeof KINDS];
const HOW: readonly GrantEnd[] = ['released', 'expired', 'forced', 'converted'];

/** The series of one kind of lock, bound once. */
interface OfKind {
  readonly immediate: Counter;
  readonly waited: Counter;
  readonly waits: Histogram;
  readonly holds: Histogram;
  readonly places: Histogram;
  readonly ends: Readonly<Record<GrantEnd, Counter>>;
}

/**
 * Statistics of locks and sessions, over all ranges that the node leads. An entry that is applied during a change of
 * leader may be counted twice, or not at all.
 */
export class RangeMetrics implements RangeMeter {
  readonly #kinds: Readonly<Record<Kind, OfKind>>;
  readonly #left: Counter;
  readonly #refused: Counter;
  readonly #refusals = new Map<string, Counter>();
  readonly #leaves = new Map<string, Counter>();
  readonly #limits: Readonly<Record<Limit, Counter>>;
  readonly #opened: Counter;
  readonly #ended: Readonly<Record<SessionEnd, Counter>>;

  constructor(metrics: Metrics) {
    this.#kinds = kindsOf(metrics);
    this.#left = metrics.counter({
      ...{ name: 'remora_lock_left_total', labels: ['code'] },
      help: 'Waiters that left the queue of a lock without a grant, by why.',
    });
    this.#refused = metrics.counter({
      ...{ name: 'remora_lock_refused_total', labels: ['code'] },
      help: 'Commands about locks that were refused, by why; LOCK_BUSY: taken, and it was not to be waited for.',
    });
    const limits = metrics.counter({
      ...{ name: 'remora_lock_limits_total', labels: ['limit'] },
      help: 'Sessions, acquires and data of locks that were refused as a limit was reached, by limit.',
    });
    const writes = metrics.counter({
      name: 'remora_disk_refusals_total',
      help: 'Writes that were refused as little room is left on the disk of the node that leads their range.',
    });
    this.#limits = {
      sessions: limits.labels('sessions'),
      session_locks: limits.labels('session_locks'),
      waiters: limits.labels('waiters'),
      data: limits.labels('data'),
      disk: writes,
    };
    const sessions = metrics.counter({
      ...{ name: 'remora_sessions_total', labels: ['event'] },
      help: 'Sessions and leases: opened, closed by their client, expired.',
    });
    this.#opened = sessions.labels('opened');
    this.#ended = { closed: sessions.labels('closed'), expired: sessions.labels('expired') };
  }

  granted(mode: HoldMode, waitedMs: number | undefined): void {
    const kind = this.#kinds[KINDS[mode]];
    if (waitedMs === undefined) return kind.immediate.inc();
    kind.waited.inc();
    kind.waits.observe(seconds(waitedMs));
  }

  ended(mode: HoldMode, how: GrantEnd, heldMs: number): void {
    const kind = this.#kinds[KINDS[mode]];
    kind.ends[how].inc();
    kind.holds.observe(seconds(heldMs));
  }

  queued(mode: Waiter['mode'], position: number): void {
    this.#kinds[KINDS[mode]].places.observe(position);
  }

  left(code: RefusalCode): void {
    bound(this.#left, this.#leaves, code).inc();
  }

  answered(result: LockResult): void {
    if (result.type === 'refused') bound(this.#refused, this.#refusals, result.code).inc();
    else if (result.type === 'busy') bound(this.#refused, this.#refusals, 'LOCK_BUSY').inc();
  }

  overLimit(limit: Limit): void {
    this.#limits[limit].inc();
  }

  sessionOpened(): void {
    this.#opened.inc();
  }

  sessionEnded(how: SessionEnd): void {
    this.#ended[how].inc();
  }
}

function kindsOf(metrics: Metrics): Readonly<Record<Kind, OfKind>> {
  const labels = ['kind'];
  const grants = metrics.counter({
    ...{ name: 'remora_lock_grants_total', labels: ['kind', 'waited'] },
    help: 'Grants of locks, upgrades and downgrades included, by whether they had to wait.',
  });
  const ends = metrics.counter({
    ...{ name: 'remora_lock_ends_total', labels: ['kind', 'how'] },
    help: 'Grants that ended: released, expired with their session, forced, or converted to another kind.',
  });
  const waits = metrics.histogram({
    ...{ name: 'remora_lock_wait_seconds', labels, buckets: WAIT_BUCKETS_SECONDS },
    help: 'Time in the queue of a lock until the grant.',
  });
  const holds = metrics.histogram({
    ...{ name: 'remora_lock_hold_seconds', labels, buckets: HOLD_BUCKETS_SECONDS },
    help: 'Time from a grant of a lock to its end.',
  });
  const places = metrics.histogram({
    ...{ name: 'remora_lock_queue_place', labels, buckets: PLACE_BUCKETS },
    help: 'Place at which waiters join the queue of a lock; 1 is next.',
  });
  const ofKind = (kind: Kind): OfKind => ({
    immediate: grants.labels(kind, 'no'),
    waited: grants.labels(kind, 'yes'),
    waits: waits.labels(kind),
    holds: holds.labels(kind),
    places: places.labels(kind),
    ends: Object.fromEntries(HOW.map((how) => [how, ends.labels(kind, how)])) as Record<GrantEnd, Counter>,
  });
  return Object.fromEntries(Object.values(KINDS).map((kind) => [kind, ofKind(kind)])) as Record<Kind, OfKind>;
}

function bound(counter: Counter, known: Map<string, Counter>, value: string): Counter {
  const series = known.get(value) ?? counter.labels(value);
  known.set(value, series);
  return series;
}

function seconds(ms: number): number {
  return Math.max(0, ms) / 1_000;
}
