import { Badge } from '../../kit/badge.tsx';
import { Span } from '../../kit/time.tsx';
import { span } from '../../logic/format.ts';
import { heartbeatAgeMs, isSilent } from '../../logic/session-text.ts';

interface HeartbeatProps {
  readonly ttlMs: number;
  readonly remainingMs: number;
}

/** How old the last heartbeat of a session was when the session was read. */
export function LastHeartbeat(session: HeartbeatProps) {
  return (
    <>
      <Span ms={heartbeatAgeMs(session)} /> ago <Silent {...session} />
    </>
  );
}

/** Marks a session that has missed its usual heartbeat. */
export function Silent(session: HeartbeatProps) {
  if (!isSilent(session)) return null;
  const usual = span(session.ttlMs / 3);
  return (
    <span title={`Clients send a heartbeat every third of the TTL, here about every ${usual}.`}>
      <Badge tone="warn">silent</Badge>
    </span>
  );
}
