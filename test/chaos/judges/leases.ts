import { type Finding, LeaseCheck, type LeaseEvent, runCheck, violation } from '../../checkers/index.ts';
import { NS_PER_MS } from '../journal/lines.ts';
import type { Operation, Round } from './evidence.ts';

/** All processes share the machine's clock. This covers rounding. */
const DRIFT_PER_MILLE = 1;

interface Asked extends Operation {
  readonly q: { readonly op: 'grant' | 'put' | 'keepAlive' | 'revoke'; readonly key: string };
  readonly a: { readonly ttlMs?: number; readonly gone?: true } | undefined;
}

/** Leases live as long as they must, and end when they must. The name of a lease is the key that belongs to it. */
export function judgeLeases(round: Round): readonly Finding[] {
  const asked = round.operations.filter(({ w }) => w === 'leases') as unknown as readonly Asked[];
  const events = asked.flatMap(eventsOf);
  for (const { key, value, t } of round.events) {
    if (key.startsWith('lease/') && value === null) events.push({ type: 'ended', lease: key, atMs: t / NS_PER_MS });
  }
  // Once the cluster is healthy again, all of them must end.
  const check = new LeaseCheck({ driftPerMille: DRIFT_PER_MILLE, endsWithinMs: Number.POSITIVE_INFINITY });
  return [...runCheck(check, events), ...round.notes.flatMap(({ w, n }) => (w === 'leases' ? leftOver(n) : []))];
}

function eventsOf({ q: { op, key: lease }, a, t0, t1, how }: Asked): LeaseEvent[] {
  const sentMs = t0 / NS_PER_MS;
  const answered = how === 'done' && t1 !== null;
  const ended: LeaseEvent[] = answered ? [{ type: 'ended', lease, atMs: t1 / NS_PER_MS }] : [];
  if (a?.gone === true) return ended;
  switch (op) {
    case 'grant':
      return answered && a?.ttlMs !== undefined ? [{ type: 'granted', lease, ttlMs: a.ttlMs, sentMs }] : [];
    case 'put':
      return [];
    case 'keepAlive':
      return [{ type: 'tried', lease, sentMs }, ...(answered ? [{ type: 'renewed', lease, sentMs } as const] : [])];
    case 'revoke':
      return [{ type: 'revoked', lease, atMs: sentMs }, ...ended];
  }
}

/** What the auditor found long after the last lease had to end. */
function leftOver(n: object): readonly Finding[] {
  if (!('leases' in n) || !('keys' in n)) return [];
  const { leases, keys } = n as { readonly leases: number; readonly keys: readonly string[] };
  return [
    ...(leases === 0 ? [] : [violation('lease: ends', `${leases} leases are alive when all had to be over`)]),
    ...keys.map((key) => violation('lease: no orphan', `${key} is there when all leases had to be over`)),
  ];
}
