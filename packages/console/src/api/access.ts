/** Who uses this page, and what the user may do. */
import type { WhoAmIJson } from '@remora/gateway/http/json/access';
import { Store } from '../logic/store.ts';
import { call, get, whenLoggedOut } from './client.ts';
import { ApiError } from './errors.ts';

export type Access =
  | { readonly state: 'unknown' }
  /** `hasEnded`: the user was logged in before. */
  | { readonly state: 'loggedOut'; readonly hasEnded: boolean }
  | { readonly state: 'in'; readonly who: WhoAmIJson };

export const access = new Store<Access>({ state: 'unknown' });

whenLoggedOut(() => {
  if (access.get().state !== 'loggedOut') access.set({ state: 'loggedOut', hasEnded: access.get().state === 'in' });
});

/** Reads who uses the page. */
export async function readAccess(): Promise<void> {
  try {
    const who = await get<WhoAmIJson>('/v1/whoami');
    const isOut = who.authentication && who.user === undefined;
    access.set(isOut ? { state: 'loggedOut', hasEnded: false } : { state: 'in', who });
  } catch (error) {
    if (error instanceof ApiError && error.code === 'UNAUTHENTICATED') return;
    throw error;
  }
}

export async function logIn(user: string, password: string): Promise<void> {
  await call('POST', '/v1/log-in', { body: { user, password } });
  await readAccess();
}

export async function logOut(): Promise<void> {
  await call('POST', '/v1/log-out', { body: {} });
  access.set({ state: 'loggedOut', hasEnded: false });
}

/** Why the user may not steer the cluster; undefined if the user may. */
export function steeringRefusal(): string | undefined {
  const present = access.get();
  if (present.state !== 'in' || !present.who.authentication || present.who.isRoot) return undefined;
  return `${present.who.user ?? 'this user'} may not change the cluster: it needs the role root.`;
}
