export { type Audit, type AuditEvent, NO_AUDIT } from './audit/audit.ts';
export { AuditLog, type AuditSink } from './audit/audit-log.ts';
export { type AuditPage, RecentAudit } from './audit/recent-audit.ts';
export {
  Authenticator,
  type AuthenticatorDeps,
  type Credentials,
  type Identification,
  REFUSED_LOG_INS,
} from './authenticator.ts';
export { checkPassword, hashPassword, isPassword, SALT_BYTES } from './credentials/password-hash.ts';
export {
  type LogIn,
  PASSWORD_LIMITS,
  PasswordHasher,
  type PasswordLimits,
  type PasswordThread,
} from './credentials/password-hasher.ts';
export { checkToken, LOG_IN_LIFE_MS, readToken, signToken, TOKEN_LIFE_MS } from './credentials/tokens.ts';
export { AUTH_TRUST_MS, KnownAuth, type KnownAuthDeps } from './known-auth.ts';
export { needsOfCommand, needsOfQuery } from './needs/command-needs.ts';
export { isPlain, type LeaseNeed, type Need, type OwnerNeed, type PlainNeed } from './needs/need.ts';
export { passwordThread } from './node/password-thread.ts';
export { Authority, needText, spanText, type Verdict } from './permissions/authority.ts';
export {
  type Explainable,
  type Explanation,
  explain,
  type RolePermission,
} from './permissions/explanation.ts';
export { isSameSpan, type KeySpan } from './permissions/key-spans.ts';
export type { Principal } from './principal.ts';
export { ROOT } from './root.ts';
export { AUTH_LIMITS, type AuthLimits, checkAuthChange } from './state/auth-limits.ts';
export { AuthState, FIRST_AUTH, type FirstRoot } from './state/auth-state.ts';
