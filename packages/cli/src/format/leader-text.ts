import { jsonBytes } from '@remora/base';
import type { Leader } from 'remora';
import { printable } from './bytes-text.ts';

export function leaderText(leader: Leader | undefined): string {
  if (leader === undefined) return 'no leader';
  const { version, value, owner, sinceMs } = leader;
  const session = owner.session.lease.toString(16);
  return `${version}  ${new Date(sinceMs).toISOString()}  session ${session}  ${printable(value)}`;
}

export function jsonLeader(leader: Leader | undefined): unknown {
  if (leader === undefined) return null;
  const { version, value, owner, sinceMs } = leader;
  const { id: ownerId, session } = owner;
  const since = new Date(sinceMs).toISOString();
  return { version, value: jsonBytes(value), ownerId, session: session.lease.toString(16), since };
}
