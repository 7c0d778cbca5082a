/** The display of a lock: as text, and as JSON. */
import { formatDurationMs, jsonBytes } from '@remora/base';
import type { Holder, HolderDetails, HolderState, LockDetails, LockState } from 'remora';
import { printable } from './bytes-text.ts';
import { askedText, forcedText, jsonForced } from './lock-event-text.ts';
import { counted } from './sizes.ts';
import { table } from './table.ts';
import { conditionText, jsonTerms, leftText, timeText } from './terms-text.ts';

export function lockText(state: LockDetails): string {
  const { lock, kind, holders, holderCount, waiters, waiterCount, keptData, forced, passing } = state;
  const sections = [`${printable(lock.name)} in ${lock.namespace}: ${kind}, ${heldText(state)} held`];
  if (holderCount > 0) sections.push(holdersText(holders));
  if (holders.length < holderCount) sections.push(`and ${counted(holderCount - holders.length, 'more holder')}`);
  if (keptData !== undefined) sections.push(`data kept by an earlier holder: ${printable(keptData)}`);
  if (forced !== undefined) sections.push(forcedText(forced));
  if (state.revocation !== undefined) sections.push(`release requested${askedText(state.revocation)}`);
  if (passing > 0) sections.push(`${passing} waiting at the barrier`);
  if (waiterCount > 0) {
    const queue = waiters.map((waiter) => [
      waiter.position,
      waiter.owner.id,
      modeText(waiter),
      waiter.owner.session.lease.toString(16),
      new Date(waiter.sinceMs).toISOString(),
    ]);
    sections.push(table(['POSITION', 'WAITER', 'MODE', 'SESSION', 'SINCE'], queue));
    if (waiters.length < waiterCount) sections.push(`and ${counted(waiterCount - waiters.length, 'more waiter')}`);
  }
  return sections.join('\n\n');
}

function holdersText(holders: readonly HolderDetails[]): string {
  const rows = holders.map((holder) => {
    const { owner, depth, terms } = holder;
    const times = terms === undefined ? ['', ''] : [timeText(terms.ttlMs), leftText(terms.remainingMs)];
    return [owner.id, holderText(holder), depth, ...times, ...holderCells(holder)];
  });
  const head = ['HOLDER', 'MODE', 'DEPTH', 'TTL', 'REMAINING', 'VERSION', 'SINCE', 'SESSION', 'DATA'];
  const conditions = holders.flatMap(({ owner, terms }) =>
    terms?.condition === undefined ? [] : [`${owner.id}: ${conditionText(terms.condition)}`],
  );
  return [table(head, rows), ...conditions].join('\n');
}

/** The holders, or the held permits and their total. */
export function heldText({ kind, holderCount, permits, capacity }: LockState): string {
  return kind === 'semaphore' ? `${permits} of ${capacity}` : String(holderCount);
}

function modeText({ mode, permits }: { readonly mode: string; readonly permits: number }): string {
  if (mode !== 'permits') return mode;
  return permits === 1 ? '1 permit' : `${permits} permits`;
}

function holderText(holder: HolderState): string {
  const mode = modeText(holder);
  return holder.delayed ? `${mode}, delayed for up to ${formatDurationMs(holder.delayMs)}` : mode;
}

export function holderCells(holder: Holder | undefined): (string | number)[] {
  if (holder === undefined) return ['', '', '', ''];
  const { version, lockTimeMs, owner, data } = holder;
  return [version, new Date(lockTimeMs).toISOString(), owner.session.lease.toString(16), printable(data)];
}

/** `terms` of the holders if they are known. */
export function jsonLock(state: LockState | LockDetails) {
  const { lock, kind, holders, holderCount, waiters, waiterCount, permits, capacity, keptData, forced, passing } =
    state;
  return {
    namespace: lock.namespace,
    name: jsonBytes(lock.name),
    kind,
    ...(kind === 'semaphore' ? { permits, capacity } : {}),
    ...(keptData === undefined ? {} : { keptData: jsonBytes(keptData) }),
    ...(forced === undefined ? {} : { forced: jsonForced(forced) }),
    ...(passing === 0 ? {} : { passing }),
    holders: holders.map(jsonHolder),
    holderCount,
    waiters: waiters.map(({ owner, position, sinceMs, mode, permits: wanted }) => ({
      ownerId: owner.id,
      session: owner.session.lease.toString(16),
      mode,
      ...(mode === 'permits' ? { permits: wanted } : {}),
      position,
      since: new Date(sinceMs).toISOString(),
    })),
    waiterCount,
  };
}

function jsonHolder(holder: HolderState | HolderDetails) {
  const { owner, version, depth, lockTimeMs, data, mode, permits, keepsData, delayMs, delayed } = holder;
  return {
    ownerId: owner.id,
    session: owner.session.lease.toString(16),
    mode,
    ...(mode === 'permits' ? { permits } : {}),
    version,
    depth,
    ...('terms' in holder && holder.terms !== undefined ? jsonTerms(holder.terms) : {}),
    lockTime: new Date(lockTimeMs).toISOString(),
    data: jsonBytes(data),
    ...(keepsData ? { keepsData: true } : {}),
    ...(delayMs > 0 ? { lockDelayMs: delayMs, delayed } : {}),
  };
}
