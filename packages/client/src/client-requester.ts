/**
 * What sends the requests of a client, for parts of the SDK that are built on its public methods (`remora/redlock`,
 * `remora/migrate`). A client has no field for it: programs have no use for one.
 */
import type { Requester } from './transport/requester.ts';

const REQUESTERS = new WeakMap<object, Requester>();

export function keepRequester(client: object, requester: Requester): void {
  REQUESTERS.set(client, requester);
}

/** Undefined for anything that is not a client of this copy of the SDK. */
export function requesterOf(client: unknown): Requester | undefined {
  return typeof client === 'object' && client !== null ? REQUESTERS.get(client) : undefined;
}
