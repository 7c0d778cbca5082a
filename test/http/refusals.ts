import { GUID, LOCKS, lockPath as path } from './http-bed.ts';

/**
 * A request that is refused before anything is asked of the cluster. Unless it says otherwise it is an acquire of `l`.
 */
export interface Refused {
  readonly method?: string;
  readonly target?: string;
  readonly body?: unknown;
  /** Status and code. */
  readonly is: string;
}

const acquire = path('l', 'acquire');

export const REFUSED: readonly Refused[] = [
  { target: '/v1/lock/x', is: '404 UNIMPLEMENTED' },
  { target: path('a/b', 'acquire'), is: '404 UNIMPLEMENTED' },
  { method: 'GET', target: acquire, is: '405 UNIMPLEMENTED' },
  { target: path('%G0', 'acquire'), is: '400 INVALID_ARGUMENT' },
  { target: path('', 'acquire'), is: '400 INVALID_ARGUMENT' },
  { target: path('x'.repeat(1_025), 'acquire'), is: '400 INVALID_ARGUMENT' },
  { target: `${acquire}?wait=5s`, is: '400 INVALID_ARGUMENT' },
  { method: 'GET', target: `${LOCKS}?limit=0`, is: '400 INVALID_ARGUMENT' },
  { method: 'GET', target: `${LOCKS}?limit=1&limit=2`, is: '400 INVALID_ARGUMENT' },
  { method: 'GET', target: '/v1/locks/%FF', is: '400 INVALID_ARGUMENT' },
  { body: [], is: '400 INVALID_ARGUMENT' },
  { body: { waits: '5s' }, is: '400 INVALID_ARGUMENT' },
  { body: { wait: '5 s' }, is: '400 INVALID_ARGUMENT' },
  { body: { wait: '2h' }, is: '400 INVALID_ARGUMENT' },
  { body: { wait: -1 }, is: '400 INVALID_ARGUMENT' },
  { body: { ttl: 10 }, is: '400 INVALID_ARGUMENT' },
  { body: { token: 'fifteen letters' }, is: '400 INVALID_ARGUMENT' },
  { body: { ttl: '1s', session: '1.1', token: GUID }, is: '400 INVALID_ARGUMENT' },
  { body: { session: '1.1' }, is: '400 INVALID_ARGUMENT' },
  { body: { session: 'x', token: GUID }, is: '400 INVALID_ARGUMENT' },
  { body: { token: '' }, is: '400 INVALID_ARGUMENT' },
  { body: { token: `${GUID}\ud800` }, is: '400 INVALID_ARGUMENT' },
  { body: { permits: 1 }, is: '400 INVALID_ARGUMENT' },
  { body: { permits: 0, capacity: 1 }, is: '400 INVALID_ARGUMENT' },
  { body: { shared: true, capacity: 1 }, is: '400 INVALID_ARGUMENT' },
  { body: { pass: true, shared: true }, is: '400 INVALID_ARGUMENT' },
  { body: { pass: true, parties: 2 }, is: '400 INVALID_ARGUMENT' },
  { body: { parties: 2, capacity: 2 }, is: '400 INVALID_ARGUMENT' },
  { body: { parties: 0 }, is: '400 INVALID_ARGUMENT' },
  { body: { parties: 2, keepData: true }, is: '400 INVALID_ARGUMENT' },
  { body: { parties: 2, lockDelay: '1s' }, is: '400 INVALID_ARGUMENT' },
  { body: { pass: true, data: 'x' }, is: '400 INVALID_ARGUMENT' },
  { target: path('l', 'upgrade'), body: { session: '1.1', token: 't' }, is: '400 INVALID_ARGUMENT' },
  {
    target: path('l', 'upgrade'),
    body: { session: '1.1', token: 't', version: Number.MAX_SAFE_INTEGER },
    is: '400 INVALID_ARGUMENT',
  },
  { target: path('l', 'downgrade'), body: { session: '1.1', token: 't', version: 0 }, is: '400 INVALID_ARGUMENT' },
  { target: path('l', 'downgrade'), body: { session: '1.1', token: '', version: 1 }, is: '400 INVALID_ARGUMENT' },
  { target: path('l', 'leave'), body: { session: '1.1', token: 't', version: 1, for: 1 }, is: '400 INVALID_ARGUMENT' },
  { body: { shared: 'yes' }, is: '400 INVALID_ARGUMENT' },
  { body: { data: 'x'.repeat(4_097) }, is: '400 INVALID_ARGUMENT' },
  { body: { data: { base64: '?' } }, is: '400 INVALID_ARGUMENT' },
  { body: { attributes: ['x'] }, is: '400 INVALID_ARGUMENT' },
  { target: path('l', 'renew'), body: { session: '1.1' }, is: '400 INVALID_ARGUMENT' },
  { target: path('l', 'release'), body: { session: '1.1' }, is: '400 INVALID_ARGUMENT' },
  { target: path('l', 'release'), body: { token: '' }, is: '400 INVALID_ARGUMENT' },
  { target: path('l', 'release'), body: { token: '\ud800' }, is: '400 INVALID_ARGUMENT' },
  { target: path('l', 'release'), body: { session: 'x', token: 't' }, is: '400 INVALID_ARGUMENT' },
  { target: path('', 'release'), body: { token: 't' }, is: '400 INVALID_ARGUMENT' },
  { target: '/v1/check', body: { checks: [{ name: 'a', version: 1.5 }] }, is: '400 INVALID_ARGUMENT' },
  { target: path('l', 'acquire'), body: { lockDelay: '2m' }, is: '400 INVALID_ARGUMENT' },
  { method: 'PUT', target: path('l', 'data'), body: { data: 'x' }, is: '400 INVALID_ARGUMENT' },
  {
    method: 'PUT',
    target: path('l', 'depth'),
    body: { session: '1.1', token: 't', version: 1 },
    is: '400 INVALID_ARGUMENT',
  },
  { method: 'DELETE', target: path('', 'data'), is: '400 INVALID_ARGUMENT' },
  { method: 'GET', target: '/v1/events/default/', is: '400 INVALID_ARGUMENT' },
  { method: 'GET', target: '/v1/events/default?from=1', is: '400 INVALID_ARGUMENT' },
  { target: '/v1/check', body: { checks: [] }, is: '400 INVALID_ARGUMENT' },
  { target: path('l', 'revoke'), body: { for: 0 }, is: '400 INVALID_ARGUMENT' },
  { target: path('l', 'force-release'), body: { requestId: '' }, is: '400 INVALID_ARGUMENT' },
  { target: path('l', 'force-release'), body: { force: true }, is: '400 INVALID_ARGUMENT' },
  { method: 'PUT', target: path('l', 'capacity'), body: {}, is: '400 INVALID_ARGUMENT' },
  { method: 'GET', target: `${LOCKS}/l?all`, is: '400 INVALID_ARGUMENT' },
  { method: 'GET', target: '/openapi.json', body: { x: 1 }, is: '400 INVALID_ARGUMENT' },
  { target: '/v1/sessions', body: { ttl: '2d' }, is: '400 INVALID_ARGUMENT' },
  { method: 'GET', target: '/v1/sessions?limit=0', is: '400 INVALID_ARGUMENT' },
  { method: 'GET', target: '/v1/sessions/x', is: '400 INVALID_ARGUMENT' },
  { target: '/v1/sessions/1/renew', is: '400 INVALID_ARGUMENT' },
  { method: 'DELETE', target: '/v1/sessions/1.0', is: '400 INVALID_ARGUMENT' },
];
