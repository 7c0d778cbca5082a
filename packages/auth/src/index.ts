export { checkPassword } from './credentials/password-hash.ts';
export { type LogIn, PASSWORD_LIMITS, PasswordHasher, type PasswordLimits } from './credentials/password-hasher.ts';
export { checkToken, readToken, signToken, TOKEN_LIFE_MS } from './credentials/tokens.ts';
export { needsOfCommand, needsOfQuery } from './needs/command-needs.ts';
export { isPlain, type LeaseNeed, type Need, type PlainNeed } from './needs/need.ts';
export { passwordThread } from './node/password-thread.ts';
export { Authority, type Verdict } from './permissions/authority.ts';
export { ROOT } from './root.ts';
export { AuthState, FIRST_AUTH } from './state/auth-state.ts';
