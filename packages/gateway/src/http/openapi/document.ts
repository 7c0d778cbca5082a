import { ACCESS_OPERATIONS } from './access-operations.ts';
import { CLUSTER_OPERATIONS } from './cluster-operations.ts';
import { HISTORY_OPERATIONS } from './history-operations.ts';
import { KV_OPERATIONS } from './kv-operations.ts';
import { type Operation, type Operations, queryParameter, type Stream } from './operation.ts';
import { JSON_LINES, type Schema } from './parts.ts';
import { ref, SCHEMAS } from './schemas.ts';

const TAKEN = { 423: 'Another owner holds it (LOCK_BUSY), or held it for the whole time to wait (LOCK_TIMEOUT).' };
const GONE = { 410: 'The session has ended (SESSION_EXPIRED).' };
const EVERYWHERE: Readonly<Record<number, string>> = {
  400: 'The request is malformed (INVALID_ARGUMENT): the message says what is expected.',
  401: 'Authentication is on, and the credentials are missing or wrong (UNAUTHENTICATED).',
  403: 'The user may not do that (PERMISSION_DENIED): the message names the missing permission. Or a web page of another site has sent the request (INVALID_ARGUMENT).',
  429: 'The node is overloaded (RESOURCE_EXHAUSTED): retry later.',
  500: 'A defect of the server (INTERNAL); see the log of the node.',
  503: 'Temporarily unavailable (UNAVAILABLE and others); nothing was changed: retry.',
  504: 'No answer in time (DEADLINE_EXCEEDED), or the outcome is unknown (UNKNOWN_OUTCOME): repeat the call.',
};
const WITH_BODY: Readonly<Record<number, string>> = {
  413: 'The body is too large (REQUEST_TOO_LARGE).',
  415: 'The content type is not the one of the call: application/json, or application/jsonl (INVALID_ARGUMENT).',
};

const EVENTS =
  'Sends the states of the locks (begin, state), then live, then changes (events), each once and in order for each lock. ' +
  'After an interruption in the cluster, and after a reconnect, the states are sent again. Events have no ids.';

const LOCK = '/v1/locks/{namespace}/{name}';
const SESSION = '/v1/sessions/{session}';

const LOCK_EVENTS: Stream = {
  events: {
    begin: ref('EventBegin'),
    state: ref('EventState'),
    live: ref('EventLive'),
    events: ref('EventEvents'),
    // The last one: the caller may not watch these locks any more.
    error: ref('Error'),
  },
};

const OPERATIONS: Operations = {
  [`${LOCK}/acquire`]: {
    post: {
      id: 'acquireLock',
      summary: 'Acquires a lock, shares it, takes permits of a semaphore, or waits at a barrier.',
      description: 'Pass the answer to renew and release. A lock that is not renewed is released after its ttl.',
      body: 'Acquire',
      answer: 'Grant',
      errors: {
        ...TAKEN,
        ...GONE,
        409: 'Refused: LOCK_KIND_MISMATCH, LOCK_PERMITS_EXCEEDED, LOCK_CANCELED (the token was used before).',
      },
    },
  },
  [`${LOCK}/upgrade`]: {
    post: {
      id: 'upgradeLock',
      summary: 'Converts a shared hold of a lock to an exclusive one, without releasing it.',
      description:
        'Returns a new grant with a higher version: use that one from now on. While the upgrade waits, no other caller can ' +
        'join the holders. After 423 the lock is shared as before, or the upgrade was granted at the last moment: repeat ' +
        'the call to find out, or call downgrade to give the upgrade up. Do not repeat it with the same version after that.',
      body: 'Upgrade',
      answer: 'Grant',
      errors: {
        423: 'Others share it (LOCK_BUSY), or did for the whole time to wait (LOCK_TIMEOUT).',
        ...GONE,
        409: 'Another holder waits to upgrade (LOCK_UPGRADE_CONFLICT); the lock is lost (LOCK_NOT_HELD); the upgrade was given up (LOCK_CANCELED).',
      },
    },
  },
  [`${LOCK}/downgrade`]: {
    post: {
      id: 'downgradeLock',
      summary:
        'Converts an exclusive hold of a lock to a shared one, without releasing it; gives up a waiting upgrade.',
      description: 'Returns a new grant: use that one from now on. A repeated call changes nothing.',
      body: 'Downgrade',
      answer: 'Grant',
      errors: { ...GONE, 409: 'The lock is lost (LOCK_NOT_HELD), or is a semaphore (LOCK_KIND_MISMATCH).' },
    },
  },
  [`${LOCK}/leave`]: {
    post: {
      id: 'leaveBarrier',
      summary: 'Leaves a double barrier, and waits until all have left.',
      description:
        'The caller has left even if the call ends before the others leave. The cluster remembers that all have left until ' +
        'release confirms the answer, or the session ends.',
      body: 'Leave',
      answer: 'Left',
      errors: {
        423: 'The caller has left, and others have not (LOCK_BUSY), or not within the time to wait (LOCK_TIMEOUT).',
        ...GONE,
        409: 'The name is a semaphore (LOCK_KIND_MISMATCH), or the barrier was released (LOCK_CANCELED).',
      },
    },
  },
  [`${LOCK}/renew`]: {
    post: {
      id: 'renewLock',
      summary: 'Keeps a lock for another ttl, and checks that it is still held.',
      description: 'Renews the session, and with it all of its locks.',
      body: 'Renew',
      answer: 'Session',
      errors: { ...GONE, 409: 'The lock is lost: it was released or taken away (LOCK_NOT_HELD).' },
    },
  },
  [`${LOCK}/release`]: {
    post: {
      id: 'releaseLock',
      summary: 'Releases a lock, or leaves its queue or barrier. A repeated call changes nothing.',
      body: 'Release',
      answer: 'Released',
    },
  },
  [`${LOCK}/force-release`]: {
    post: {
      id: 'forceReleaseLock',
      summary: 'Takes a lock from all of its holders. They may not notice: only the fencing version protects then.',
      description:
        'Send a `requestId` so that you can repeat the call after a lost answer; without one, look first who holds the lock.',
      body: 'ForceRelease',
      answer: 'ForceReleased',
      errors: { 409: 'The lock has no holder (LOCK_NOT_HELD).' },
    },
  },
  [`${LOCK}/revoke`]: {
    post: {
      id: 'revokeLock',
      summary: 'Asks the holders of a lock to release it. The SDK and events notify them, and they may decline.',
      body: 'Revoke',
      answer: 'Revoking',
      errors: { 409: 'The lock has no holder (LOCK_NOT_HELD).' },
    },
  },
  [`${LOCK}/capacity`]: {
    put: {
      id: 'setCapacity',
      summary: 'Sets the number of permits of a semaphore. No holder loses permits.',
      body: 'SetCapacity',
      answer: 'Capacity',
      errors: { 409: 'The name is in use as a lock (LOCK_KIND_MISMATCH).' },
    },
  },
  [`${LOCK}/data`]: {
    put: {
      id: 'setData',
      summary: 'Changes the data of a held lock. Send the answer to acquire, and the data.',
      body: 'SetData',
      answer: 'DataSet',
      errors: { ...GONE, 409: 'The grant has ended (LOCK_NOT_HELD, LOCK_WRONG_OWNER).' },
    },
    delete: {
      id: 'forgetData',
      summary: 'Removes the data that earlier holders left with a lock. A repeated call changes nothing.',
      answer: 'Forgotten',
    },
  },
  [`${LOCK}/depth`]: {
    put: {
      id: 'setDepth',
      summary: 'Records how often the holder of a lock has entered it. Send the answer to acquire, and the depth.',
      description:
        'For a holder that enters the lock several times and counts that itself; others see the depth. A repeated call ' +
        'changes nothing. Release gives up all levels at once.',
      body: 'SetDepth',
      answer: 'DepthSet',
      errors: { ...GONE, 409: 'The grant has ended (LOCK_NOT_HELD).' },
    },
  },
  '/v1/events/{namespace}/{name}': {
    get: {
      id: 'watchLock',
      summary: 'Watches a lock, as server-sent events.',
      description: EVENTS,
      answer: LOCK_EVENTS,
    },
  },
  '/v1/events/{namespace}': {
    get: {
      id: 'watchLocks',
      summary: 'Watches all locks whose names start with a prefix, as server-sent events.',
      description: EVENTS,
      query: [queryParameter('prefix', 'Default: all locks of the namespace.', { type: 'string' })],
      answer: LOCK_EVENTS,
    },
  },
  [LOCK]: {
    get: {
      id: 'showLock',
      summary: 'Returns the holders and waiters of a lock. Lists are empty when the lock is free.',
      answer: 'ShownLock',
    },
  },
  '/v1/locks/{namespace}': {
    get: {
      id: 'listLocks',
      summary: 'Lists the locks that have holders or waiters, in the order of their names.',
      description:
        'Free locks are listed if they have data, a set capacity, or a record of a forced release. With `contains`, ' +
        '`kind` or `waiting`, a request looks at up to 20,000 locks: a page may be short or empty although there is a next one.',
      query: [
        queryParameter('prefix', 'Only names that start with it.', { type: 'string' }),
        queryParameter('contains', 'Only names that have this part.', { type: 'string' }),
        queryParameter('kind', 'Only locks of this kind; `barrier`: callers wait at it. An election is exclusive.', {
          type: 'string',
          enum: ['exclusive', 'shared', 'semaphore', 'barrier'],
        }),
        queryParameter('waiting', '`true`: only locks with waiters in the queue or at the barrier.', {
          type: 'boolean',
        }),
        queryParameter('after', 'Only names after this one: `next` of the previous page.', { type: 'string' }),
        queryParameter('limit', 'The largest number of entries; default 100.', {
          type: 'integer',
          minimum: 1,
          maximum: 1000,
        }),
      ],
      answer: 'Locks',
    },
  },
  '/v1/namespaces': {
    get: {
      id: 'listNamespaces',
      summary: 'Lists the namespaces in which there are locks, or were a moment ago.',
      description: 'Needs permission to read all locks. Shorter names come first.',
      query: [
        queryParameter('after', '`next` of the previous page.', { type: 'string' }),
        queryParameter('limit', 'The largest number of entries; default 100.', {
          type: 'integer',
          minimum: 1,
          maximum: 1000,
        }),
      ],
      answer: 'Namespaces',
    },
  },
  '/v1/check': {
    post: {
      id: 'checkVersions',
      summary:
        'Checks whether versions are still current. Use it for diagnosis: between a check and a write, a lock may be lost.',
      body: 'Check',
      answer: 'Checked',
    },
  },
  '/v1/sessions': {
    get: {
      id: 'listSessions',
      summary:
        'Lists sessions, also the leases of etcd clients, which have no owner. With authentication on, users list their own sessions (`owner`); others need `steer` on all locks, or the role root.',
      query: [
        queryParameter('after', '`next` of the previous page.', { type: 'string' }),
        queryParameter('limit', 'The largest number of entries; default 100.', {
          type: 'integer',
          minimum: 1,
          maximum: 1000,
        }),
        queryParameter('owner', 'Only sessions of this user; empty: only those that were begun without a user.', {
          type: 'string',
        }),
      ],
      answer: 'Sessions',
    },
    post: {
      id: 'openSession',
      summary: 'Opens a session that several locks can share.',
      body: 'OpenSession',
      answer: 'Session',
    },
  },
  [`${SESSION}/renew`]: {
    post: {
      id: 'renewSession',
      summary: 'Keeps a session and all of its locks for another ttl.',
      body: 'RenewSession',
      answer: 'Session',
      errors: GONE,
    },
  },
  [`${SESSION}/locks`]: {
    get: {
      id: 'sessionLocks',
      summary: 'Returns what a session holds and what it waits for, and since when.',
      answer: 'SessionLocks',
      errors: GONE,
    },
  },
  [SESSION]: {
    get: {
      id: 'showSession',
      summary: 'Returns a session, with the locks that it holds or waits for.',
      answer: 'SessionState',
      errors: GONE,
    },
    delete: {
      id: 'closeSession',
      summary: 'Ends a session and releases all of its locks. A repeated call changes nothing.',
      answer: 'Closed',
    },
  },
  ...KV_OPERATIONS,
  ...ACCESS_OPERATIONS,
  ...CLUSTER_OPERATIONS,
  ...HISTORY_OPERATIONS,
  '/openapi.json': {
    get: { id: 'openapi', summary: 'This document.', answer: { type: 'object', description: 'OpenAPI 3.1.' } },
  },
};

const PARAMETERS: Readonly<Record<string, string>> = {
  namespace: 'Separates users of one cluster; other clients use "default" by default.',
  name: 'Any bytes, percent-encoded: a / is %2F.',
  session: 'The session id, as it was answered.',
  node: 'The id of a node.',
  range: 'The id of a range.',
  operator: 'The id of an operator.',
  scheduler: 'The name of a scheduler.',
  setting: 'The name of a setting.',
  user: 'The name of a user.',
  role: 'The name of a role.',
  key: 'Any bytes, percent-encoded: a / is %2F.',
};

/** The OpenAPI document of the JSON API. */
export const OPENAPI = {
  openapi: '3.1.0',
  info: {
    title: 'Remora over HTTP',
    version: '1.0.0',
    description:
      'For shell scripts, and languages without an SDK. Times in answers are in ms. Bodies are application/json. ' +
      'Every call can be repeated after a lost answer; a force-release only with a `requestId`.',
    license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
  },
  paths: Object.fromEntries(
    Object.entries(OPERATIONS).map(([path, operations]) => [
      path,
      Object.fromEntries(Object.entries(operations).map(([method, it]) => [method, operation(path, it)])),
    ]),
  ),
  components: {
    schemas: SCHEMAS,
    securitySchemes: {
      password: { type: 'http', scheme: 'basic', description: 'Name and password of a user.' },
      token: { type: 'http', scheme: 'bearer', description: "A token of etcd's Authenticate." },
      cookie: {
        ...{ type: 'apiKey', in: 'cookie', name: 'remora_session' },
        description: 'The cookie of /v1/log-in; the header x-remora-csrf: 1 is needed too, except for GET.',
      },
      certificate: { type: 'mutualTLS', description: 'A certificate whose common name is the user.' },
    },
  },
  // The empty one: while authentication is off.
  security: [{ password: [] }, { token: [] }, { cookie: [] }, { certificate: [] }, {}],
};

function operation(path: string, described: Operation): Schema {
  const { id, summary, description, query = [], body, bodyLines, answer, errors } = described;
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    ...{ name, in: 'path', required: true, schema: { type: 'string' } },
    description: PARAMETERS[name],
  }));
  const failures = { ...EVERYWHERE, ...((body ?? bodyLines) ? WITH_BODY : {}), ...errors };
  return {
    ...{ operationId: id, summary },
    ...(description === undefined ? {} : { description }),
    ...(inPath.length + query.length === 0 ? {} : { parameters: [...inPath, ...query] }),
    ...bodyOf(described),
    responses: {
      200: { description: 'Done.', content: contentOf(answer) },
      ...Object.fromEntries(
        Object.entries(failures).map(([status, said]) => [status, { description: said, content: json(ref('Error')) }]),
      ),
    },
  };
}

function bodyOf({ body, bodyLines }: Operation): Schema {
  if (body !== undefined) return { requestBody: { required: true, content: json(ref(body)) } };
  if (bodyLines === undefined) return {};
  return { requestBody: { required: true, content: { [JSON_LINES]: { schema: ref(bodyLines) } } } };
}

function contentOf(answer: Operation['answer']): Schema {
  if (typeof answer === 'string') return json(ref(answer));
  if (!isStream(answer)) return json(answer);
  if ('lines' in answer) return { [JSON_LINES]: { schema: ref(answer.lines) } };
  // OpenAPI 3.1 cannot describe the data of each event.
  return { 'text/event-stream': { schema: { type: 'string' }, 'x-event-data': answer.events } };
}

function isStream(answer: Schema | Stream): answer is Stream {
  return 'events' in answer || 'lines' in answer;
}

function json(schema: Schema): Schema {
  return { 'application/json': { schema } };
}
