import type { AuditEvent } from './audit.ts';

/** Texts of one event. */
const TARGETS_MAX = 16;
const TEXT_CHARACTERS_MAX = 512;

/** An event whose texts are bounded, flat. */
export interface BoundedEvent {
  readonly principal?: string;
  readonly method: string;
  readonly address?: string;
  readonly door?: string;
  readonly action: string;
  readonly decision: AuditEvent['decision'];
  readonly targets: readonly string[];
  readonly reason?: string;
  readonly requestId?: string;
}

/**
 * What is shown of an event: at most about `TARGETS_MAX` × `TEXT_CHARACTERS_MAX` characters. Nothing that a caller
 * sends makes it longer.
 */
export function boundedEvent({ principal, targets = [], reason, requestId, ...event }: AuditEvent): BoundedEvent {
  const { name, method = 'none', address, door } = principal ?? {};
  const texts = targets.slice(0, TARGETS_MAX).map(cut);
  return {
    ...(name !== undefined && { principal: cut(name) }),
    method,
    ...(address !== undefined && { address }),
    ...(door !== undefined && { door }),
    ...event,
    targets: targets.length > TARGETS_MAX ? [...texts, `and ${targets.length - TARGETS_MAX} more`] : texts,
    ...(reason !== undefined && { reason: cut(reason) }),
    ...(requestId !== undefined && { requestId: cut(requestId) }),
  };
}

function cut(text: string): string {
  return text.length <= TEXT_CHARACTERS_MAX ? text : `${text.slice(0, TEXT_CHARACTERS_MAX)}…`;
}
