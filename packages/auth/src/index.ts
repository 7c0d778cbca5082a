export { Authority, type Verdict } from './permissions/authority.ts';
export type { Need } from './permissions/need.ts';
export type { AuthChange } from './state/auth-change.ts';
export { AuthState } from './state/auth-state.ts';
export * from './types.ts';
