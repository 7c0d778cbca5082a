import type { Door, Principal } from '@remora/protocol';

/**
 * Something that the audit log shows. It has no field for a value, a password, a hash or a token.
 *
 * `allowed`: it was let in or done. `denied`: the caller may not do it. `failed`: the caller could not prove who it is,
 * or was let in and got an error.
 */
export interface AuditEvent {
  /** What was asked for: `logIn`, `put`, `lock.forceRelease`, `addUser`. */
  readonly action: string;
  readonly decision: 'allowed' | 'denied' | 'failed';
  readonly principal: AuditedCaller | undefined;
  /** What the action needed, or what it changed: keys and names are escaped texts. */
  readonly targets?: readonly string[];
  /** Why it was denied, or failed. */
  readonly reason?: string | undefined;
  readonly requestId?: string | undefined;
}

/** Who asked, as far as it is known, and from where. */
type AuditedCaller = Pick<Principal, 'name' | 'method'> & Origin;

/** From where a caller asks. */
interface Origin {
  readonly door?: Door | undefined;
  /** Without the port. */
  readonly address?: string | undefined;
}

/** Where what happened is recorded. */
export interface Audit {
  /** Whether anything is recorded: if not, callers need not be identified while authentication is off. */
  readonly isOn: boolean;
  /** Whether writes that succeeded are recorded too. */
  readonly writes: boolean;
  /** Never waits, and never throws. */
  record(event: AuditEvent): void;
}

export const NO_AUDIT: Audit = { isOn: false, writes: false, record() {} };
