import { type Bytes, EMPTY_BYTES, ServiceError } from '@remora/base';
import type { LockId } from '@remora/lock';
import type { LockWatchOptions } from '../backend.ts';
import { ACCESS_ROUTES } from './access/access-routes.ts';
import { AUDIT_ROUTE } from './access/audit-routes.ts';
import { USERS_ROUTES } from './access/users-routes.ts';
import { CLUSTER_ROUTES, type ClusterRoute } from './cluster/cluster-routes.ts';
import { HISTORY_ROUTES } from './cluster/history-routes.ts';
import type { LockAnswer } from './json/locks.ts';
import { KV_ROUTES } from './kv/kv-routes.ts';
import { LIVE_ROUTES } from './live/live-routes.ts';
import { lockEvents } from './lock-events.ts';
import { OPENAPI } from './openapi/document.ts';
import { bytesParam, changing, type HttpCall, param, type Route, reading, slotOf, untilClosed } from './route.ts';
import type { HttpDetails } from './statuses.ts';
import { onlyThese, type Target } from './targets.ts';

const LOCK = '/v1/locks/{namespace}/{name}';
const SESSION = '/v1/sessions/{session}';

export const ROUTES: readonly Route[] = [
  {
    ...{ method: 'POST', path: `${LOCK}/acquire` },
    async handle({ acquires }, call) {
      onlyThese(call.target.query, []);
      const { grant, takeBack } = await acquires.acquire(lockOf(call), call.fields, call.signal);
      return { status: 200, body: grant, undelivered: takeBack };
    },
  },
  changing('POST', `${LOCK}/upgrade`, ({ acquires }, call) => acquires.upgrade(lockOf(call), call.fields, call.signal)),
  changing('POST', `${LOCK}/downgrade`, ({ locks }, call) => locks.downgrade(lockOf(call), call.fields)),
  changing('POST', `${LOCK}/leave`, ({ acquires }, call) => acquires.leave(lockOf(call), call.fields, call.signal)),
  changing('POST', `${LOCK}/renew`, ({ locks }, call) => locks.renew(lockOf(call), call.fields)),
  changing('POST', `${LOCK}/release`, ({ locks }, call) => locks.release(lockOf(call), call.fields)),
  changing('POST', `${LOCK}/force-release`, ({ locks }, call) => locks.forceRelease(lockOf(call), call.fields)),
  changing('POST', `${LOCK}/revoke`, ({ locks }, call) => locks.revoke(lockOf(call), call.fields)),
  changing('PUT', `${LOCK}/capacity`, ({ locks }, call) => locks.setCapacity(lockOf(call), call.fields)),
  changing('PUT', `${LOCK}/data`, ({ locks }, call) => locks.setData(lockOf(call), call.fields)),
  changing('PUT', `${LOCK}/depth`, ({ locks }, call) => locks.setDepth(lockOf(call), call.fields)),
  changing('DELETE', `${LOCK}/data`, ({ locks }, call) => {
    call.fields.end();
    return locks.forget(lockOf(call));
  }),
  telling('/v1/events/{namespace}/{name}', (call) => {
    onlyThese(call.target.query, []);
    return { ...lockOf(call), single: true };
  }),
  telling('/v1/events/{namespace}', (call) => {
    const { query } = call.target;
    onlyThese(query, ['prefix']);
    return { namespace: param(call, 'namespace'), name: query.get('prefix') ?? EMPTY_BYTES, single: false };
  }),
  changing('POST', '/v1/check', ({ locks }, call) => locks.check(call.fields)),
  reading(LOCK, async ({ locks, clock }, call): Promise<LockAnswer> => {
    onlyThese(call.target.query, []);
    return { ...(await locks.show(lockOf(call))), nowMs: clock.wallMs() };
  }),
  reading('/v1/locks/{namespace}', ({ lists }, call) => lists.list(param(call, 'namespace'), call.target)),
  reading('/v1/namespaces', ({ lists }, call) => lists.namespaces(call.target)),
  changing('POST', '/v1/sessions', ({ sessions }, call) => sessions.open(call.fields)),
  reading('/v1/sessions', ({ sessions }, call) => sessions.list(call.target)),
  reading(SESSION, ({ sessions }, call) => {
    onlyThese(call.target.query, []);
    return sessions.show(param(call, 'session'));
  }),
  reading(`${SESSION}/locks`, ({ sessions }, call) => {
    onlyThese(call.target.query, []);
    return sessions.locks(param(call, 'session'));
  }),
  changing('POST', `${SESSION}/renew`, ({ sessions }, call) => sessions.renew(param(call, 'session'), call.fields)),
  changing('DELETE', SESSION, ({ sessions }, call) => {
    call.fields.end();
    return sessions.close(param(call, 'session'));
  }),
  ...KV_ROUTES,
  ...ACCESS_ROUTES,
  ...USERS_ROUTES,
  AUDIT_ROUTE,
  ...CLUSTER_ROUTES.map(ofCluster),
  ...HISTORY_ROUTES.map(ofCluster),
  ...LIVE_ROUTES,
  reading('/openapi.json', async () => OPENAPI),
];

/** Time for a call of administration. */
const ADMIN_TIMEOUT_MS = 10_000;

function ofCluster({ method, path, needs, action, run }: ClusterRoute): Route {
  return {
    ...{ method, path },
    handle: async ({ admin, backend }, call) => {
      const { principal, fields, target } = call;
      backend.check(principal, needs, action);
      const info = { timeoutMs: ADMIN_TIMEOUT_MS, callerMs: undefined, seen: { newest: 0 }, principal };
      const { query } = target;
      const asked = run({ api: admin, backend, info, query, fields, param: (name) => param(call, name) });
      return { status: 200, body: await asked.catch(asNotFound) };
    },
  };
}

/** The caller has named the range: asking again does not help. */
function asNotFound(error: unknown): never {
  if (!(error instanceof ServiceError) || error.code !== 'RANGE_NOT_FOUND') throw error;
  const details: HttpDetails = { httpStatus: 404 };
  throw new ServiceError('INVALID_ARGUMENT', error.message, { cause: error, details: { ...details } });
}

function telling(path: string, watched: (call: HttpCall) => LockWatchOptions): Route {
  return {
    ...{ method: 'GET', path },
    handle: async ({ backend, waits, backlog }, call) => {
      call.fields.end();
      const events = lockEvents(backend, backlog, { ...watched(call), principal: call.principal });
      const giveSlot = slotOf({ waits });
      return { status: 200, body: undefined, events: untilClosed(events, giveSlot), undelivered: giveSlot };
    },
  };
}

/** Returns the routes whose path matches, with the values of the names in braces. */
export function routesOf({ segments }: Target): readonly { readonly route: Route; readonly params: Params }[] {
  return ROUTES.flatMap((route) => {
    const params = match(route.path, segments);
    return params === undefined ? [] : [{ route, params }];
  });
}

type Params = HttpCall['params'];

function match(path: string, segments: Target['segments']): Params | undefined {
  const parts = path.split('/').slice(1);
  if (parts.length !== segments.length) return undefined;
  const params = new Map<string, Bytes>();
  for (const [i, part] of parts.entries()) {
    const segment = segments[i] as Bytes;
    if (part.startsWith('{')) params.set(part.slice(1, -1), segment);
    else if (Buffer.compare(segment, Buffer.from(part)) !== 0) return undefined;
  }
  return params;
}

function lockOf(call: HttpCall): LockId {
  return { namespace: param(call, 'namespace'), name: bytesParam(call, 'name') };
}
