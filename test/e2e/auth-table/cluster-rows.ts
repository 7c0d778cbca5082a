/** HTTP: the cluster, users and roles, the audit log, and log-in. */
import type { HttpRequest } from './doors.ts';
import { EVERYBODY, ROOT, type Row, type Rows, type Verdicts, WRITER_ITSELF } from './verdicts.ts';

const CLUSTER = '/v1/cluster';
const RANGE = `${CLUSTER}/ranges/{range}`;
const NODE = `${CLUSTER}/nodes/{node}`;

/** What a request about something that is not there gets from a node that carries it out. */
const NOT_THERE: Pick<Row<HttpRequest>, 'despite'> = { despite: /99|nothing|nobody|not a version/ };

function one(method: string, path: string, may: Verdicts, body?: object): Rows<HttpRequest> {
  return [{ may, request: () => ({ method, path, ...(body !== undefined && { body }) }), ...NOT_THERE }];
}

const looks = (path: string, query = ''): readonly [string, Rows<HttpRequest>] => [
  `GET ${CLUSTER}${path}`,
  one('GET', `${CLUSTER}${path.replace('{node}', '1').replace('{range}', '2')}${query}`, ROOT),
];

export const CLUSTER_ROWS: Readonly<Record<string, Rows<HttpRequest>>> = {
  ...Object.fromEntries([
    ...['', '/health', '/nodes', '/nodes/{node}/why', '/hot-ranges', '/ranges/{range}', '/ranges/{range}/why'].map(
      (path) => looks(path),
    ),
    looks('/ranges', '?limit=1'),
    ...['/operators', '/schedulers', '/rebalance', '/settings', '/upgrade', '/activity', '/heat'].map((path) =>
      looks(path),
    ),
    looks('/live', '?topics=operators'),
  ]),
  [`PUT ${NODE}/duty`]: one('PUT', `${CLUSTER}/nodes/99/duty`, ROOT, { duty: 'draining' }),
  [`PUT ${NODE}/log-level`]: one('PUT', `${CLUSTER}/nodes/1/log-level`, ROOT, { level: 'nothing' }),
  [`POST ${RANGE}/split`]: one('POST', `${CLUSTER}/ranges/99/split`, ROOT, {}),
  [`POST ${RANGE}/merge`]: one('POST', `${CLUSTER}/ranges/99/merge`, ROOT, { source: 98 }),
  [`POST ${RANGE}/move`]: one('POST', `${CLUSTER}/ranges/99/move`, ROOT, { from: 1, to: 99 }),
  [`POST ${RANGE}/add-replica`]: one('POST', `${CLUSTER}/ranges/99/add-replica`, ROOT, { node: 99 }),
  [`POST ${RANGE}/remove-replica`]: one('POST', `${CLUSTER}/ranges/99/remove-replica`, ROOT, { node: 99 }),
  [`POST ${RANGE}/transfer`]: one('POST', `${CLUSTER}/ranges/2/transfer`, ROOT, { to: 99 }),
  [`DELETE ${CLUSTER}/operators/{operator}`]: one('DELETE', `${CLUSTER}/operators/99`, ROOT),
  [`PUT ${CLUSTER}/schedulers/{scheduler}`]: one('PUT', `${CLUSTER}/schedulers/nothing`, ROOT, { pausedFor: '1s' }),
  [`POST ${CLUSTER}/rebalance`]: one('POST', `${CLUSTER}/rebalance`, ROOT, {}),
  [`PUT ${CLUSTER}/settings/{setting}`]: one('PUT', `${CLUSTER}/settings/nothing`, ROOT, { value: '1' }),
  [`POST ${CLUSTER}/upgrade/finalize`]: one('POST', `${CLUSTER}/upgrade/finalize`, ROOT, { version: '0.0' }),

  'POST /v1/log-in': one('POST', '/v1/log-in', EVERYBODY, { user: 'stranger', password: 'stranger-pw' }),
  'POST /v1/log-out': one('POST', '/v1/log-out', EVERYBODY, {}),
  'GET /v1/whoami': one('GET', '/v1/whoami', EVERYBODY),

  'GET /v1/users': one('GET', '/v1/users', ROOT),
  'GET /v1/users/{user}': one('GET', '/v1/users/writer', WRITER_ITSELF),
  'PUT /v1/users/{user}': [
    {
      may: ROOT,
      request: (world) => ({ method: 'PUT', path: `/v1/users/${encodeURIComponent(`${world.fresh('u')}`)}`, body: {} }),
    },
  ],
  'DELETE /v1/users/{user}': one('DELETE', '/v1/users/nobody', ROOT),
  'PUT /v1/users/{user}/roles/{role}': one('PUT', '/v1/users/nobody/roles/reader', ROOT, {}),
  'DELETE /v1/users/{user}/roles/{role}': one('DELETE', '/v1/users/nobody/roles/reader', ROOT),
  'GET /v1/roles': one('GET', '/v1/roles', ROOT),
  'GET /v1/roles/{role}': one('GET', '/v1/roles/writer', WRITER_ITSELF),
  'PUT /v1/roles/{role}': [
    {
      may: ROOT,
      request: (world) => ({ method: 'PUT', path: `/v1/roles/${encodeURIComponent(`${world.fresh('r')}`)}`, body: {} }),
    },
  ],
  'DELETE /v1/roles/{role}': one('DELETE', '/v1/roles/nothing', ROOT),
  'POST /v1/roles/{role}/grant': one('POST', '/v1/roles/nothing/grant', ROOT, { keys: { access: 'read', key: 'x' } }),
  'POST /v1/roles/{role}/revoke': one('POST', '/v1/roles/nothing/revoke', ROOT, { keys: { access: 'read', key: 'x' } }),
  'POST /v1/can': [
    {
      may: WRITER_ITSELF,
      request: () => ({
        ...{ method: 'POST', path: '/v1/can' },
        body: { user: 'writer', keys: { access: 'read', key: 'x' } },
      }),
    },
    {
      name: 'root',
      may: ROOT,
      request: () => ({ method: 'POST', path: '/v1/can', body: { user: 'root', administer: true } }),
    },
  ],
  'GET /v1/audit': one('GET', '/v1/audit', ROOT),
};
