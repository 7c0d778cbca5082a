/** The events of a lock, as `/v1/events/{namespace}/{name}` sends them, in words. */
import type { JsonBytes } from '../../logic/bytes.ts';

interface Owned {
  readonly session: string;
  readonly ownerId: string;
}

export type LockEventJson =
  | {
      readonly type: 'acquired' | 'upgraded';
      readonly holder: Owned & { readonly version: number };
      readonly waited: boolean;
    }
  | { readonly type: 'downgraded' | 'changed'; readonly holder: Owned & { readonly version: number } }
  | ({ readonly type: 'released' | 'expired' | 'forced'; readonly version: number } & Owned)
  | { readonly type: 'queued'; readonly waiter: Owned & { readonly position: number } }
  | ({ readonly type: 'left'; readonly code: string } & Owned)
  | { readonly type: 'capacity'; readonly capacity: number }
  | { readonly type: 'kept'; readonly data: JsonBytes | null }
  | { readonly type: 'revoking'; readonly revocation: { readonly by: string; readonly reason: string } | null }
  | { readonly type: 'recorded'; readonly forced: unknown }
  | { readonly type: 'passing'; readonly count: number };

export function eventText(event: LockEventJson): string {
  switch (event.type) {
    case 'acquired':
      return `acquired${event.waited ? ' after waiting' : ''}, version ${event.holder.version}, by`;
    case 'upgraded':
      return `upgraded to exclusive, version ${event.holder.version}, by`;
    case 'downgraded':
      return `downgraded to shared, version ${event.holder.version}, by`;
    case 'changed':
      return `data or depth changed by`;
    case 'released':
      return `released (version ${event.version}) by`;
    case 'expired':
      return `lost (version ${event.version}): the session ended, of`;
    case 'forced':
      return `taken by force (version ${event.version}) from`;
    case 'queued':
      return `queued at position ${event.waiter.position}:`;
    case 'left':
      return `left the queue (${event.code}):`;
    case 'capacity':
      return event.capacity === 0 ? 'capacity removed' : `capacity set to ${event.capacity}`;
    case 'kept':
      return event.data === null ? 'data left behind was deleted' : 'data was left behind';
    case 'revoking':
      return revocationText(event.revocation);
    case 'recorded':
      return event.forced === null ? 'record of a forced release deleted' : 'forced release recorded';
    case 'passing':
      return `${event.count} wait at the barrier`;
    default:
      return `event ${(event as { readonly type: string }).type} of a newer release`;
  }
}

function revocationText(revocation: { readonly by: string; readonly reason: string } | null): string {
  if (revocation === null) return 'the request to release is over';
  const { by, reason } = revocation;
  return `holders were asked to release${by === '' ? '' : ` by ${by}`}${reason === '' ? '' : `: ${reason}`}`;
}

export function sessionOf(event: LockEventJson): string | undefined {
  if ('holder' in event) return event.holder.session;
  if ('waiter' in event) return event.waiter.session;
  return 'session' in event ? event.session : undefined;
}
