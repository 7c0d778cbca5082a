/**
 * The lock procedures: what each command does to a lock (design §15). Pure functions over `LockView`, called by
 * apply on every replica. Commands come in checked (`validateLockCommand`) and within their deadline: apply refuses
 * one that is past it, by the same range time that `LockView.timeMs` shows.
 *
 * L1. A lock has at most one holder. Its version is the revision of the command that granted, and stays the same
 *     over re-entries; as revisions grow, so do versions, over deletion and restart, with nothing left in storage.
 * L2. Waiters are granted in the order in which they joined. Whoever ends a grant passes it on in the same command,
 *     so no wake-up can be lost (trap 21). A waiter whose session is not alive or whose wait is over is removed
 *     instead, and answered (traps 19, 20).
 * L3. A grant goes to a living session only: checked when acquiring and again when handing over (trap 19).
 * L4. A command that is refused changes nothing that others can see; it may clear ended marks, remove its own waiter
 *     whose time has passed, or leave a mark.
 *
 * Marks. A canceled or released acquire may still be under way (sent again by a gateway, delayed by a network), and
 * must not be granted afterwards. So cancel and release leave a mark for the owner, which refuses such an acquire,
 * and lives as long as one may be applied: until the latest deadline of those sent before, which the command names.
 *
 * M1. Where the client numbers its acquires (`attempt`), a mark refuses those up to the highest number that was
 *     ended. The next acquire has a higher one: release → acquire works at once, with any deadlines. Numbers also
 *     tell an acquire that is asked again from a re-entry, and name the level that a cancel undoes.
 *     A release or cancel below the number that was granted is one of an earlier grant that comes late: it leaves the
 *     present one alone.
 * M2. Where it does not, a mark refuses acquires whose deadline is not after the mark's. Those sent before are refused,
 *     as the mark's deadline is the latest of theirs; a new one passes if its deadline is later, as it is when an
 *     owner uses one time limit throughout. In doubt the rule refuses, never grants: an owner that varies its limits
 *     numbers its acquires or takes a new token for each. Without numbers, an acquire asked again by the holder is
 *     a re-entry, and a cancel undoes one level.
 * M3. `deadlineMs: 0` on a release says that no acquire can be under way any more, the usual case when the grant was
 *     answered to the first asking. No mark is left then, and the release of an uncontended lock leaves nothing.
 * M4. Marks go when their end has passed, some with every command on the lock, and with their session. A lock keeps at
 *     most MARKS_MAX; beyond that the mark nearest to its end gives way: at worst a lock is held by an owner that gave
 *     up, until its session ends, while refusing would stop everyone.
 */
import { unreachable } from '@remora/base';
import { WAITERS_MAX } from './limits.ts';
import { LockRows, sameOwner, sameSession } from './lock-rows.ts';
import type { Hold, Mark, OwnerRecord, WaiterRecord } from './records.ts';
import type {
  Holder,
  LockCommand,
  LockId,
  LockNotice,
  LockOutcome,
  LockResult,
  LockView,
  SessionRef,
} from './types.ts';

type CommandOf<T extends LockCommand['type']> = Extract<LockCommand, { readonly type: T }>;
type RefusalCode = Extract<LockResult, { readonly type: 'refused' }>['code'];

const NO_NOTICES: readonly LockNotice[] = [];

/** Applies one command. `notices` answer open calls of others, or (a forced release) tell a holder of its loss. */
export function applyLockCommand(view: LockView, command: LockCommand): LockOutcome {
  const rows = new LockRows(view, command.lock);
  rows.clearEndedMarks();
  const outcome = dispatch(view, rows, command);
  rows.save();
  return outcome;
}

/**
 * Takes a session that has ended out of one lock: its hold, its waiters (answered SESSION_EXPIRED) and its marks; and
 * grants onward. Called for every lock that the session is attached to; calling it again changes nothing.
 */
export function sessionEnded(view: LockView, session: SessionRef, lock: LockId): readonly LockNotice[] {
  const rows = new LockRows(view, lock);
  const notices: LockNotice[] = rows
    .removeSession(session)
    .map((owner) => ({ lock, owner, result: refused('SESSION_EXPIRED', SESSION_MESSAGE) }));
  const holder = rows.hold?.holder;
  if (holder !== undefined && sameSession(holder.owner.session, session)) {
    rows.vacate();
    handOver({ view, rows, lock, notices });
  }
  rows.save();
  return notices;
}

function dispatch(view: LockView, rows: LockRows, command: LockCommand): LockOutcome {
  switch (command.type) {
    case 'acquire':
      return { result: acquire(view, rows, command), notices: NO_NOTICES };
    case 'release':
      return release(view, rows, command);
    case 'cancel':
      return cancel(view, rows, command);
    case 'forceRelease':
      return forceRelease(view, rows, command);
    default:
      return unreachable(command);
  }
}

function acquire(view: LockView, rows: LockRows, command: CommandOf<'acquire'>): LockResult {
  const { owner, data, wait, waitUntilMs, attempt = 0 } = command;
  if (!view.sessionAlive(owner.session)) return refused('SESSION_EXPIRED', SESSION_MESSAGE);
  const record = rows.owner(owner);
  if (isMarked(view, record, command)) {
    return refused('LOCK_CANCELED', 'this acquire was canceled, or its lock released, before it arrived');
  }
  const hold = rows.hold;
  if (hold !== undefined && sameOwner(hold.holder.owner, owner)) return reenter(rows, hold, command);
  if (wait && waitIsOver(view, waitUntilMs)) {
    if (record.sequence !== 0) rows.removeWaiter(owner, record);
    return refused('LOCK_TIMEOUT', `the time to wait ended at range time ${waitUntilMs} ms; it is ${view.timeMs} ms`);
  }
  if (hold === undefined) return granted(rows.grant({ owner, attempt, data }));
  if (!wait) return { type: 'busy', holder: hold.holder };
  if (record.sequence !== 0) return waitOn(rows, record, command);
  if (rows.waiters >= WAITERS_MAX) {
    return refused('RESOURCE_EXHAUSTED', `the lock has ${WAITERS_MAX} waiters, and takes no more`);
  }
  rows.enqueue({ owner, attempt, waitUntilMs, sinceMs: view.wallMs, data }, record);
  return { type: 'queued', position: rows.waiters };
}

function reenter(rows: LockRows, hold: Hold, command: CommandOf<'acquire'>): LockResult {
  const { depthMax, attempt = 0 } = command;
  const { holder } = hold;
  if (attempt > 0 && attempt <= hold.attempt) return granted(holder); // Asked again (M1).
  if (holder.depth >= depthMax) {
    return refused('LOCK_DEPTH_EXCEEDED', `the owner holds ${holder.depth} levels, and may hold ${depthMax}`);
  }
  const deeper = { ...holder, depth: holder.depth + 1 };
  rows.setHold({ ...hold, holder: deeper, attempt: Math.max(attempt, hold.attempt) });
  return granted(deeper);
}

/** The owner is in the queue already: it keeps its place, and the latest acquire says how long it waits. */
function waitOn(rows: LockRows, record: OwnerRecord, command: CommandOf<'acquire'>): LockResult {
  const { waitUntilMs, attempt = 0, data } = command;
  const waiter = rows.waiter(record.sequence);
  const newer = attempt > waiter.attempt;
  if (newer || (attempt === waiter.attempt && waitUntilMs !== waiter.waitUntilMs)) {
    rows.replaceWaiter(record.sequence, { ...waiter, attempt, waitUntilMs, data: newer ? data : waiter.data });
  }
  return { type: 'queued', position: rows.position(record.sequence) };
}

function release(view: LockView, rows: LockRows, command: CommandOf<'release'>): LockOutcome {
  const { lock, owner, all } = command;
  const hold = rows.hold;
  if (hold === undefined || !sameOwner(hold.holder.owner, owner) || isOfEarlierGrant(command, hold)) {
    return { result: releaseOfNothing(view, rows, command), notices: NO_NOTICES };
  }
  const { version, depth } = hold.holder;
  if (!all && depth > 1) {
    rows.setHold(oneLevelLess(hold));
    return { result: { type: 'released', depth: depth - 1, version }, notices: NO_NOTICES };
  }
  rows.vacate();
  leaveMark(view, rows, command, Math.max(command.attempt ?? 0, hold.attempt));
  const notices: LockNotice[] = [];
  handOver({ view, rows, lock, notices });
  return { result: { type: 'released', depth: 0, version }, notices };
}

/** The mark makes the answer stay true: an acquire still under way does not make the owner a holder later. */
function releaseOfNothing(view: LockView, rows: LockRows, command: CommandOf<'release'>): LockResult {
  const { owner } = command;
  if (!view.sessionAlive(owner.session)) return refused('SESSION_EXPIRED', SESSION_MESSAGE);
  if (rows.owner(owner).sequence !== 0) {
    return refused('LOCK_NOT_HELD', 'the owner waits for the lock and does not hold it; cancel leaves the queue');
  }
  leaveMark(view, rows, command, command.attempt ?? 0);
  const holder = rows.hold?.holder;
  if (holder === undefined) return refused('LOCK_NOT_HELD', 'nobody holds the lock');
  if (sameOwner(holder.owner, owner)) {
    return refused('LOCK_NOT_HELD', `what this releases has ended; the owner holds a later grant, ${holder.version}`);
  }
  return refused('LOCK_WRONG_OWNER', `another owner holds the lock, since version ${holder.version}`);
}

function cancel(view: LockView, rows: LockRows, command: CommandOf<'cancel'>): LockOutcome {
  const { lock, owner, attempt = 0 } = command;
  const notices: LockNotice[] = [];
  const record = rows.owner(owner);
  if (attempt > 0 && attempt <= (liveMark(view, record)?.attempt ?? 0)) {
    return { result: { type: 'canceled', released: false }, notices }; // Ended before; must not undo another level.
  }
  if (record.sequence !== 0) {
    const waiter = rows.waiter(record.sequence);
    if (covers(attempt, waiter)) {
      rows.removeWaiter(owner, record);
      notices.push({ lock, owner, result: refused('LOCK_CANCELED', 'the acquire was canceled') });
    }
  }
  const hold = rows.hold;
  const undone =
    hold !== undefined &&
    sameOwner(hold.holder.owner, owner) &&
    (attempt === 0 || attempt <= hold.attempt) &&
    !isOfEarlierGrant(command, hold);
  const vacated = undone && hold.holder.depth === 1;
  if (vacated) rows.vacate();
  else if (undone) rows.setHold(oneLevelLess(hold));
  leaveMark(view, rows, command, vacated ? Math.max(attempt, hold.attempt) : attempt);
  if (vacated) handOver({ view, rows, lock, notices });
  return { result: { type: 'canceled', released: undone }, notices };
}

function forceRelease(view: LockView, rows: LockRows, command: CommandOf<'forceRelease'>): LockOutcome {
  const { lock } = command;
  const holder = rows.hold?.holder;
  if (holder === undefined) {
    return { result: refused('LOCK_NOT_HELD', 'nobody holds the lock'), notices: NO_NOTICES };
  }
  const result: LockResult = { type: 'released', depth: 0, version: holder.version };
  const notices: LockNotice[] = [{ lock, owner: holder.owner, result }];
  rows.vacate();
  handOver({ view, rows, lock, notices });
  return { result, notices };
}

interface HandOver {
  readonly view: LockView;
  readonly rows: LockRows;
  readonly lock: LockId;
  readonly notices: LockNotice[];
}

/** L2. Grants a vacated lock to the first waiter that can have it. */
function handOver({ view, rows, lock, notices }: HandOver): void {
  if (rows.waiters === 0) return;
  for (const waiter of rows.shift()) {
    const { owner, waitUntilMs } = waiter;
    const refusal = refusalOf(view, waiter);
    if (refusal === undefined) {
      notices.push({ lock, owner, result: granted(rows.grant(waiter)) });
      return;
    }
    const message = refusal === 'SESSION_EXPIRED' ? SESSION_MESSAGE : `the wait ended at range time ${waitUntilMs} ms`;
    notices.push({ lock, owner, result: refused(refusal, message) });
  }
}

/** L3. Why a waiter cannot be granted the lock. */
function refusalOf(view: LockView, waiter: WaiterRecord): 'SESSION_EXPIRED' | 'LOCK_TIMEOUT' | undefined {
  if (!view.sessionAlive(waiter.owner.session)) return 'SESSION_EXPIRED';
  return waitIsOver(view, waiter.waitUntilMs) ? 'LOCK_TIMEOUT' : undefined;
}

function waitIsOver(view: LockView, waitUntilMs: number): boolean {
  return waitUntilMs > 0 && view.timeMs > waitUntilMs;
}

/** A mark whose end has passed says nothing, whether it was cleared yet or not. */
function liveMark(view: LockView, { mark }: OwnerRecord): Mark | undefined {
  return mark !== undefined && mark.deadlineMs >= view.timeMs ? mark : undefined;
}

/** M1, M2. Whether an acquire may have been sent before the cancel or release that left the mark. */
function isMarked(view: LockView, record: OwnerRecord, command: CommandOf<'acquire'>): boolean {
  const mark = liveMark(view, record);
  if (mark === undefined) return false;
  const attempt = command.attempt ?? 0;
  if (attempt > 0 && mark.attempt > 0) return attempt <= mark.attempt;
  return command.deadlineMs <= mark.deadlineMs;
}

/** A mark is of use only while an acquire may still be applied, and for a session that could be granted one (M3). */
function leaveMark(
  view: LockView,
  rows: LockRows,
  command: CommandOf<'release'> | CommandOf<'cancel'>,
  attempt: number,
): void {
  const { owner, deadlineMs } = command;
  if (deadlineMs === 0 || deadlineMs < view.timeMs || !view.sessionAlive(owner.session)) return;
  rows.mark(owner, { attempt, deadlineMs });
}

/** M1. Whether a release or cancel by the holder was meant for a grant that it had before. */
function isOfEarlierGrant({ attempt = 0 }: { readonly attempt?: number }, hold: Hold): boolean {
  return attempt > 0 && attempt < hold.firstAttempt;
}

/** Whether a cancel of `attempt` (0: of whatever there is) means this waiter, not a later acquire of its owner. */
function covers(attempt: number, waiter: WaiterRecord): boolean {
  return attempt === 0 || waiter.attempt <= attempt;
}

function oneLevelLess(hold: Hold): Hold {
  return { ...hold, holder: { ...hold.holder, depth: hold.holder.depth - 1 } };
}

const SESSION_MESSAGE = 'the session has ended, and its locks were released';

function granted(holder: Holder): LockResult {
  return { type: 'granted', version: holder.version, depth: holder.depth, lockTimeMs: holder.lockTimeMs };
}

function refused(code: RefusalCode, message: string): LockResult {
  return { type: 'refused', code, message };
}
