import type { Owner, PublicOwner, SessionRef } from './types.ts';

export function sameSession(a: SessionRef, b: SessionRef): boolean {
  return a.lease === b.lease && a.incarnation === b.incarnation;
}

export function sameOwner(a: Owner, b: Owner): boolean {
  return a.token === b.token && sameSession(a.session, b.session);
}

export function samePublicOwner(a: PublicOwner, b: PublicOwner): boolean {
  return a.id === b.id && sameSession(a.session, b.session);
}
