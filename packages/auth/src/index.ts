export { checkPassword } from './credentials/password-hash.ts';
export { checkToken, readToken, signToken, TOKEN_LIFE_MS } from './credentials/tokens.ts';
export { Authority, type Verdict } from './permissions/authority.ts';
export type { Need } from './permissions/need.ts';
export { ROOT } from './root.ts';
export { AuthState } from './state/auth-state.ts';
