/** HTTP: every route of the JSON API, and what is served beside it. etcd's routes are in etcd-rows.ts. */
import { CLUSTER_ROWS } from './cluster-rows.ts';
import type { HttpRequest } from './doors.ts';
import {
  ANY_USER,
  EVERYBODY,
  KEY_EDITORS,
  KEY_READERS,
  KEY_WRITERS,
  LOCK_READERS,
  LOCK_USER,
  OWNER_OR_STEERERS,
  ROOT,
  type Rows,
  STEERERS,
  type Verdicts,
} from './verdicts.ts';
import type { World } from './world.ts';

/** As callers name a session. */
const textOf = ({ id, incarnation }: World['session']): string =>
  `${BigInt.asUintN(64, id).toString(16)}.${incarnation}`;
/** A grant that the lock user might have: of a lock that nobody holds. */
const granted = (world: World, more: object = {}) => ({
  ...{ session: textOf(world.session), token: world.freshToken(), version: 1 },
  ...more,
});
const LOCK = '/v1/locks/default/a%2Fl';
const ROUTE = '/v1/locks/{namespace}/{name}';
const SESSION = '/v1/sessions/{session}';

function post(call: string, may: Verdicts, body: (world: World) => object = () => ({})): Rows<HttpRequest> {
  return [{ may, request: (world) => ({ method: 'POST', path: `${LOCK}/${call}`, body: body(world) }) }];
}

function put(call: string, may: Verdicts, body: (world: World) => object): Rows<HttpRequest> {
  return [{ may, request: (world) => ({ method: 'PUT', path: `${LOCK}/${call}`, body: body(world) }) }];
}

function get(path: string, may: Verdicts, name?: string): Rows<HttpRequest>[0] {
  return { may, request: () => ({ method: 'GET', path }), ...(name !== undefined && { name }) };
}

/** By method and path, as in the table of routes. */
export const HTTP_ROWS: Readonly<Record<string, Rows<HttpRequest>>> = {
  [`POST ${ROUTE}/acquire`]: [
    {
      may: LOCK_USER,
      request: (world) => ({
        ...{ method: 'POST', path: `/v1/locks/default/${encodeURIComponent(world.fresh().toString())}/acquire` },
        body: { session: textOf(world.session), token: world.freshToken() },
      }),
    },
    {
      name: 'with a session of its own',
      may: LOCK_USER,
      request: (world) => ({
        ...{ method: 'POST', path: `/v1/locks/default/${encodeURIComponent(world.fresh().toString())}/acquire` },
        body: { ttl: '5s' },
      }),
    },
  ],
  [`POST ${ROUTE}/upgrade`]: post('upgrade', LOCK_USER, granted),
  [`POST ${ROUTE}/downgrade`]: post('downgrade', LOCK_USER, granted),
  [`POST ${ROUTE}/leave`]: post('leave', LOCK_USER, granted),
  [`POST ${ROUTE}/renew`]: post('renew', LOCK_USER, granted),
  [`POST ${ROUTE}/release`]: post('release', LOCK_USER, granted),
  [`POST ${ROUTE}/force-release`]: post('force-release', STEERERS),
  [`POST ${ROUTE}/revoke`]: post('revoke', STEERERS),
  [`PUT ${ROUTE}/capacity`]: put('capacity', STEERERS, () => ({ capacity: 2 })),
  [`PUT ${ROUTE}/data`]: put('data', LOCK_USER, (world) => granted(world, { data: 'd' })),
  [`PUT ${ROUTE}/depth`]: put('depth', LOCK_USER, (world) => granted(world, { depth: 1 })),
  [`DELETE ${ROUTE}/data`]: [{ may: STEERERS, request: () => ({ method: 'DELETE', path: `${LOCK}/data` }) }],
  'GET /v1/events/{namespace}/{name}': [get('/v1/events/default/a%2Fl', LOCK_READERS)],
  'GET /v1/events/{namespace}': [
    get('/v1/events/default?prefix=a/', LOCK_READERS),
    get('/v1/events/default', STEERERS, 'all locks'),
  ],
  'POST /v1/check': [
    {
      may: LOCK_READERS,
      request: () => ({ method: 'POST', path: '/v1/check', body: { checks: [{ name: 'a/l', version: 1 }] } }),
    },
  ],
  [`GET ${ROUTE}`]: [get(LOCK, LOCK_READERS), get('/v1/locks/default/b', STEERERS, 'another lock')],
  'GET /v1/locks/{namespace}': [
    get('/v1/locks/default?prefix=a/', LOCK_READERS),
    get('/v1/locks/default', STEERERS, 'all locks'),
  ],
  'POST /v1/sessions': [
    { may: ANY_USER, request: () => ({ method: 'POST', path: '/v1/sessions', body: { ttl: '5s' } }) },
  ],
  'GET /v1/sessions': [
    get('/v1/sessions', STEERERS),
    get('/v1/sessions?owner=lockUser', OWNER_OR_STEERERS, 'of one user'),
  ],
  [`GET ${SESSION}`]: [
    { may: OWNER_OR_STEERERS, request: ({ session }) => ({ method: 'GET', path: `/v1/sessions/${textOf(session)}` }) },
  ],
  [`POST ${SESSION}/renew`]: [
    {
      may: LOCK_USER,
      request: ({ session }) => ({ method: 'POST', path: `/v1/sessions/${textOf(session)}/renew`, body: {} }),
    },
  ],
  [`DELETE ${SESSION}`]: [
    {
      may: OWNER_OR_STEERERS,
      request: async (world) => ({ method: 'DELETE', path: `/v1/sessions/${textOf(await world.newSession())}` }),
    },
  ],
  [`GET ${SESSION}/locks`]: [
    {
      may: OWNER_OR_STEERERS,
      request: ({ session }) => ({ method: 'GET', path: `/v1/sessions/${textOf(session)}/locks` }),
    },
  ],
  'GET /v1/namespaces': [get('/v1/namespaces', STEERERS)],
  'GET /v1/kv/{key}': [get('/v1/kv/a%2Fk', KEY_READERS)],
  'GET /v1/kv': [get('/v1/kv?prefix=a/', KEY_READERS), get('/v1/kv', ROOT, 'all keys')],
  'GET /v1/kv-tree': [get('/v1/kv-tree?prefix=a/', KEY_READERS), get('/v1/kv-tree', ROOT, 'all keys')],
  'GET /v1/kv-history/{key}': [get('/v1/kv-history/a%2Fk', KEY_READERS)],
  'GET /v1/kv-events': [
    get('/v1/kv-events?prefix=a/', KEY_READERS),
    get('/v1/kv-events?key=a%2Fk', KEY_READERS, 'one key'),
    get('/v1/kv-events', ROOT, 'all keys'),
  ],
  'GET /v1/kv-export': [get('/v1/kv-export?prefix=a/', KEY_READERS), get('/v1/kv-export', ROOT, 'all keys')],
  'POST /v1/kv-import': [
    {
      name: 'over what is there',
      may: KEY_WRITERS,
      request: () => ({ method: 'POST', path: '/v1/kv-import?mode=overwrite', lines: [{ key: 'a/i', value: 'v' }] }),
    },
    {
      name: 'if it is absent',
      may: KEY_EDITORS,
      request: () => ({ method: 'POST', path: '/v1/kv-import', lines: [{ key: 'a/i', value: 'v' }] }),
    },
    {
      name: 'also elsewhere',
      may: ROOT,
      request: () => {
        const lines = ['a/i', 'elsewhere'].map((key) => ({ key, value: 'v' }));
        return { method: 'POST', path: '/v1/kv-import?mode=overwrite', lines };
      },
    },
  ],
  'PUT /v1/kv/{key}': [
    { may: KEY_WRITERS, request: () => ({ method: 'PUT', path: '/v1/kv/a%2Fh', body: { value: 'v' } }) },
    {
      name: 'with a condition',
      may: KEY_EDITORS,
      request: () => ({ method: 'PUT', path: '/v1/kv/a%2Fh', body: { value: 'v', ifVersion: 0 } }),
    },
    {
      name: 'under a lock, which it has to read',
      may: ROOT,
      request: () => {
        const fence = { name: 'a/l', version: 1 };
        return { method: 'PUT', path: '/v1/kv/a%2Fh', body: { value: 'v', fence } };
      },
    },
  ],
  'DELETE /v1/kv/{key}': [
    { may: KEY_WRITERS, request: () => ({ method: 'DELETE', path: '/v1/kv/a%2Fh' }) },
    {
      name: 'with a condition',
      may: KEY_EDITORS,
      request: () => ({ method: 'DELETE', path: '/v1/kv/a%2Fh?ifVersion=9' }),
    },
    {
      name: 'under a lock, which it has to read',
      may: ROOT,
      request: () => ({ method: 'DELETE', path: '/v1/kv/a%2Fh?fenceName=a%2Fl&fenceVersion=1' }),
    },
  ],
  'DELETE /v1/kv': [
    {
      may: KEY_EDITORS,
      request: () => ({ method: 'DELETE', path: '/v1/kv?prefix=a/gone&unchangedSince=1' }),
    },
  ],
  ...CLUSTER_ROWS,
  'GET /openapi.json': [get('/openapi.json', EVERYBODY)],
};

/** For probes and Prometheus, on each port that speaks HTTP: they show nothing that a client has stored. */
export const PROBES: Readonly<Record<string, Verdicts>> = {
  '/health': EVERYBODY,
  '/ready': EVERYBODY,
  '/metrics': EVERYBODY,
};
