import { jsonBytes, unreachable } from '@remora/base';
import type { ForcedRelease, HolderState, LockState, LocksWatchEvent, LockWatchEvent, Revocation } from 'remora';
import { printable } from './bytes-text.ts';

type OwnerOf = HolderState['owner'];

/** One line about a lock: the revision, its name, and what happened. Undefined for events that only separate states. */
export function lockEventText(event: LocksWatchEvent): string | undefined {
  if (event.type === 'begin' || event.type === 'live') return undefined;
  return `${event.revision}  ${printable(event.lock.name)}  ${whatText(event)}`;
}

function whatText(event: LockWatchEvent): string {
  switch (event.type) {
    case 'state':
      return stateText(event.state);
    case 'acquired':
      return `${event.type} by ${holderText(event.holder)}${event.waited ? ', after waiting' : ''}`;
    case 'upgraded':
    case 'downgraded':
    case 'changed':
      return `${event.type} by ${holderText(event.holder)}`;
    case 'released':
    case 'expired':
    case 'forced':
      return `${event.type}: ${ownerText(event.owner)}, version ${event.version}`;
    case 'queued':
      return `queued: ${ownerText(event.waiter.owner)}, ${event.waiter.mode}, position ${event.waiter.position}`;
    case 'left':
      return `left the queue: ${ownerText(event.owner)}, ${event.code}`;
    case 'revoking':
      return event.revocation === undefined
        ? 'release request withdrawn'
        : `release requested${askedText(event.revocation)}`;
    case 'capacity':
      return event.capacity === 0 ? 'capacity removed' : `capacity ${event.capacity}`;
    case 'kept':
      return event.data === undefined ? 'kept data deleted' : `keeps ${printable(event.data)}`;
    case 'recorded':
      return event.forced === undefined ? 'record of the forced release deleted' : forcedText(event.forced);
    case 'passing':
      return `${event.count} waiting at the barrier`;
    default:
      return unreachable(event);
  }
}

function stateText(state: LockState | undefined): string {
  if (state === undefined) return 'free';
  const { kind, holderCount, waiterCount, permits, capacity } = state;
  const held = kind === 'semaphore' ? `${permits} of ${capacity} permits held` : `${kind}, held by ${holderCount}`;
  return waiterCount === 0 ? held : `${held}; ${waiterCount} waiting`;
}

function holderText({ owner, version, depth, mode, permits, data, delayed }: HolderState): string {
  const how = `${mode === 'permits' ? `${permits} of its permits` : mode}${delayed ? ', delayed' : ''}`;
  const level = depth > 1 ? `, depth ${depth}` : '';
  return `${ownerText(owner)}, ${how}, version ${version}${level}${data.length > 0 ? `, ${printable(data)}` : ''}`;
}

function ownerText({ id, session }: OwnerOf): string {
  return `${id} (session ${session.lease.toString(16)})`;
}

export function forcedText({ atMs, by, reason, version }: ForcedRelease): string {
  const why = reason === '' ? '' : `: ${printable(Buffer.from(reason))}`;
  return `taken by force from version ${version} by ${printable(Buffer.from(by)) || 'unknown'}, ${new Date(atMs).toISOString()}${why}`;
}

export function jsonForced({ atMs, by, reason, version }: ForcedRelease): object {
  return { at: new Date(atMs).toISOString(), by, reason, version };
}

/** The event as plain data; `jsonState` converts a state. */
export function jsonLockEvent(event: LocksWatchEvent, jsonState: (state: LockState) => unknown): unknown {
  if (event.type === 'live') return event;
  if (event.type === 'begin') return { type: event.type, from: jsonBytes(event.from), to: jsonBytes(event.to) };
  const { type, lock, revision } = event;
  return {
    ...{ type, namespace: lock.namespace, name: jsonBytes(lock.name), revision },
    ...(event.type === 'state'
      ? { state: event.state === undefined ? null : jsonState(event.state) }
      : jsonWhat(event)),
  };
}

function jsonWhat(event: Exclude<LockWatchEvent, { readonly type: 'state' }>): object {
  switch (event.type) {
    case 'acquired':
    case 'upgraded':
      return { ...jsonHolder(event.holder), waited: event.waited };
    case 'downgraded':
    case 'changed':
      return jsonHolder(event.holder);
    case 'released':
    case 'expired':
    case 'forced':
      return { ...jsonOwner(event.owner), version: event.version, permits: event.permits };
    case 'queued': {
      const { owner, position, mode, permits, sinceMs } = event.waiter;
      return { ...jsonOwner(owner), position, mode, permits, since: new Date(sinceMs).toISOString() };
    }
    case 'left':
      return { ...jsonOwner(event.owner), code: event.code };
    case 'revoking':
      return { revocation: event.revocation === undefined ? null : jsonRevocation(event.revocation) };
    case 'capacity':
      return { capacity: event.capacity };
    case 'kept':
      return { keptData: event.data === undefined ? null : jsonBytes(event.data) };
    case 'recorded':
      return { forced: event.forced === undefined ? null : jsonForced(event.forced) };
    case 'passing':
      return { passing: event.count };
    default:
      return unreachable(event);
  }
}

function jsonHolder({ owner, version, depth, lockTimeMs, data, mode, permits, delayed }: HolderState): object {
  const lockTime = new Date(lockTimeMs).toISOString();
  const shown = { ...jsonOwner(owner), mode, permits, version, depth, lockTime, data: jsonBytes(data) };
  return delayed ? { ...shown, delayed } : shown;
}

/** Who asked, and why. */
export function askedText({ by, reason }: Pick<Revocation, 'by' | 'reason'>): string {
  return `${by === '' ? '' : ` by ${printable(Buffer.from(by))}`}${reason === '' ? '' : `: ${printable(Buffer.from(reason))}`}`;
}

function jsonRevocation({ by, reason, version, sinceMs }: Revocation): object {
  return { by, reason, version, since: new Date(sinceMs).toISOString() };
}

function jsonOwner({ id: ownerId, session }: OwnerOf): object {
  return { ownerId, session: session.lease.toString(16) };
}
