import { ref, SCHEMAS, type Schema } from './schemas.ts';

interface Operation {
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  readonly query?: readonly Schema[];
  readonly body?: keyof typeof SCHEMAS;
  readonly answer: keyof typeof SCHEMAS | Schema | 'events';
  /** Statuses of errors, with what they say here; 400, 429, 500, 503 and 504 can come of anything. */
  readonly errors?: Readonly<Record<number, string>>;
}

const TAKEN = { 423: 'Somebody else has it (LOCK_BUSY), or had it all the time that was given (LOCK_TIMEOUT).' };
const GONE = { 410: 'The session has ended (SESSION_EXPIRED).' };
const EVERYWHERE: Readonly<Record<number, string>> = {
  400: 'The request is wrong (INVALID_ARGUMENT): the message says what would be right.',
  403: 'A web page of another site has sent it (INVALID_ARGUMENT).',
  429: 'Too much to do (RESOURCE_EXHAUSTED): later.',
  500: 'A defect (INTERNAL), with more in the log of the node.',
  503: 'Not at the moment (UNAVAILABLE and others); nothing was changed.',
  504: 'No answer in time (DEADLINE_EXCEEDED), or it is not known whether it was done (UNKNOWN_OUTCOME): repeat it.',
};
const WITH_BODY: Readonly<Record<number, string>> = {
  413: 'The body is too large (REQUEST_TOO_LARGE).',
  415: 'The body is no application/json (INVALID_ARGUMENT).',
};

const EVENTS =
  'First how locks are (begin, state), then live, then what happens to them (events), each once and in order for each lock. ' +
  'Where it could not be gone on with, it begins again; so does whoever connects again. There are no ids.';

const LOCK = '/v1/locks/{namespace}/{name}';
const SESSION = '/v1/sessions/{session}';

const OPERATIONS: Readonly<Record<string, Readonly<Record<string, Operation>>>> = {
  [`${LOCK}/acquire`]: {
    post: {
      id: 'acquireLock',
      summary: 'Acquires a lock, shares it, takes permits of a semaphore, or waits at a barrier.',
      description:
        'What it answers is what renew and release want to have. A lock that is not renewed is free again after its ttl.',
      body: 'Acquire',
      answer: 'Grant',
      errors: {
        ...TAKEN,
        ...GONE,
        409: 'Not like this: LOCK_KIND_MISMATCH, LOCK_PERMITS_EXCEEDED, LOCK_CANCELED (the token was used).',
      },
    },
  },
  [`${LOCK}/upgrade`]: {
    post: {
      id: 'upgradeLock',
      summary: "Makes a lock that is shared its holder's alone, without letting go of it in between.",
      description:
        'Answers a new grant, with a higher version: use that one from now on. While it waits nobody else joins those who ' +
        'share the lock. After 423 it is shared as before, or was granted at the last moment: repeated, it tells; and a ' +
        'downgrade gives it up. One that was given up so is not asked for again with the same version.',
      body: 'Upgrade',
      answer: 'Grant',
      errors: {
        423: 'Others share it (LOCK_BUSY), or did all the time that was given (LOCK_TIMEOUT).',
        ...GONE,
        409: 'Another holder waits for the same (LOCK_UPGRADE_CONFLICT); it is lost (LOCK_NOT_HELD); given up (LOCK_CANCELED).',
      },
    },
  },
  [`${LOCK}/downgrade`]: {
    post: {
      id: 'downgradeLock',
      summary: 'Keeps a lock, shared from now on, and lets others in; gives up an upgrade that waits.',
      description: 'Answers a new grant: use that one from now on. Repeated, it changes nothing.',
      body: 'Downgrade',
      answer: 'Grant',
      errors: { ...GONE, 409: 'It is lost (LOCK_NOT_HELD), or is a semaphore (LOCK_KIND_MISMATCH).' },
    },
  },
  [`${LOCK}/leave`]: {
    post: {
      id: 'leaveBarrier',
      summary: 'Leaves a double barrier, and waits until all have left.',
      description:
        'It has left in any case, also when it does not wait for the others any more. That all have left is remembered until ' +
        'release says that the answer has come, or the session ends.',
      body: 'Leave',
      answer: 'Left',
      errors: {
        423: 'It has left, and others have not (LOCK_BUSY), all the time that was given (LOCK_TIMEOUT).',
        ...GONE,
        409: 'The name is a semaphore (LOCK_KIND_MISMATCH), or it was released (LOCK_CANCELED).',
      },
    },
  },
  [`${LOCK}/renew`]: {
    post: {
      id: 'renewLock',
      summary: 'Keeps a lock for another ttl, and says whether it is still held.',
      description: 'Renews its session, and thereby all that belongs to it.',
      body: 'Renew',
      answer: 'Session',
      errors: { ...GONE, 409: 'It is lost: released, or taken away (LOCK_NOT_HELD).' },
    },
  },
  [`${LOCK}/release`]: {
    post: {
      id: 'releaseLock',
      summary: 'Gives a lock back, or leaves its queue or barrier. Repeated, it changes nothing.',
      body: 'Release',
      answer: 'Released',
    },
  },
  [`${LOCK}/force-release`]: {
    post: {
      id: 'forceReleaseLock',
      summary: 'Takes a lock from all who hold it. They may not know: only the fencing version protects then.',
      description:
        'Say a `requestId` to repeat it after a lost answer; without one, look first who holds the lock now.',
      body: 'ForceRelease',
      answer: 'ForceReleased',
      errors: { 409: 'Nobody holds it (LOCK_NOT_HELD).' },
    },
  },
  [`${LOCK}/revoke`]: {
    post: {
      id: 'revokeLock',
      summary:
        'Asks those who hold a lock to let go of it. They are told, by the SDK and by events, and are free to agree.',
      body: 'Revoke',
      answer: 'Revoking',
      errors: { 409: 'Nobody holds it (LOCK_NOT_HELD).' },
    },
  },
  [`${LOCK}/capacity`]: {
    put: {
      id: 'setCapacity',
      summary: 'Says how many permits a semaphore has from now on. Nobody loses permits.',
      body: 'SetCapacity',
      answer: 'Capacity',
      errors: { 409: 'The name is in use as a lock (LOCK_KIND_MISMATCH).' },
    },
  },
  [`${LOCK}/data`]: {
    put: {
      id: 'setData',
      summary: 'Changes the data of a lock that is held, given what acquire answered and the data.',
      body: 'SetData',
      answer: 'DataSet',
      errors: { ...GONE, 409: 'The grant has ended (LOCK_NOT_HELD, LOCK_WRONG_OWNER).' },
    },
    delete: {
      id: 'forgetData',
      summary: 'Forgets what earlier holders left with a lock. Repeated, it changes nothing.',
      answer: 'Forgotten',
    },
  },
  [`${LOCK}/depth`]: {
    put: {
      id: 'setDepth',
      summary: 'Says how often the holder of a lock has entered it, given what acquire answered and the depth.',
      description:
        'For a holder that enters again and leaves, and counts that itself; others see it. Repeated, it changes nothing. ' +
        'Only release gives the lock back, all levels of it.',
      body: 'SetDepth',
      answer: 'DepthSet',
      errors: { ...GONE, 409: 'The grant has ended (LOCK_NOT_HELD).' },
    },
  },
  '/v1/events/{namespace}/{name}': {
    get: {
      id: 'watchLock',
      summary: 'What happens to a lock, as server-sent events.',
      description: EVENTS,
      answer: 'events',
    },
  },
  '/v1/events/{namespace}': {
    get: {
      id: 'watchLocks',
      summary: 'What happens to all locks whose names begin with a prefix, as server-sent events.',
      description: EVENTS,
      query: [queryParameter('prefix', 'All of the namespace unless given.', { type: 'string' })],
      answer: 'events',
    },
  },
  [LOCK]: {
    get: {
      id: 'showLock',
      summary: 'Who holds a lock, who waits for it, and since when. Of a free one there is nobody.',
      answer: 'Lock',
    },
  },
  '/v1/locks/{namespace}': {
    get: {
      id: 'listLocks',
      summary: 'The locks that are held or waited for, in the order of their names.',
      description: 'Also free ones with which something was left: data, a set capacity, or who took them by force.',
      query: [
        queryParameter('prefix', 'Only names that begin with it.', { type: 'string' }),
        queryParameter('after', 'Only names after this one: the next of the page before.', { type: 'string' }),
        queryParameter('limit', 'At most so many; 100 unless given.', { type: 'integer', minimum: 1, maximum: 1000 }),
      ],
      answer: 'Locks',
    },
  },
  '/v1/check': {
    post: {
      id: 'checkVersions',
      summary: 'Whether versions are still current. A diagnosis: checking first and writing afterwards leaves a gap.',
      body: 'Check',
      answer: 'Checked',
    },
  },
  '/v1/sessions': {
    get: {
      id: 'listSessions',
      summary: 'All sessions of the cluster, whichever client they are of; leases of etcd clients are sessions, too.',
      query: [
        queryParameter('after', 'The next of the page before.', { type: 'string' }),
        queryParameter('limit', 'At most so many; 100 unless given.', { type: 'integer', minimum: 1, maximum: 1000 }),
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
      summary: 'Keeps a session, and all that belongs to it, for another ttl.',
      body: 'RenewSession',
      answer: 'Session',
      errors: GONE,
    },
  },
  [SESSION]: {
    get: {
      id: 'showSession',
      summary: 'A session, with what it holds and waits for.',
      answer: 'SessionState',
      errors: GONE,
    },
    delete: {
      id: 'closeSession',
      summary: 'Ends a session and releases all that belongs to it. Repeated, it changes nothing.',
      answer: 'Closed',
    },
  },
  '/openapi.json': {
    get: { id: 'openapi', summary: 'This document.', answer: { type: 'object', description: 'OpenAPI 3.1.' } },
  },
};

const PARAMETERS: Readonly<Record<string, string>> = {
  namespace: 'Separates users of one cluster; "default" is what other clients use unless told otherwise.',
  name: 'Any bytes, percent-encoded: a / is %2F.',
  session: 'As it was answered.',
};

/** The description of all that the JSON interface does. */
export const OPENAPI = {
  openapi: '3.1.0',
  info: {
    title: 'Remora locks over HTTP',
    version: '1.0.0',
    description:
      'For what has no SDK: shell scripts, and other languages. Times in answers are in ms. Bodies are application/json. ' +
      'Every call can be repeated after a lost answer; a force-release only with a `requestId`.',
    license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
  },
  paths: Object.fromEntries(
    Object.entries(OPERATIONS).map(([path, operations]) => [
      path,
      Object.fromEntries(Object.entries(operations).map(([method, it]) => [method, operation(path, it)])),
    ]),
  ),
  components: { schemas: SCHEMAS },
};

function operation(path: string, { id, summary, description, query = [], body, answer, errors }: Operation): Schema {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    ...{ name, in: 'path', required: true, schema: { type: 'string' } },
    description: PARAMETERS[name],
  }));
  const failures = { ...EVERYWHERE, ...(body === undefined ? {} : WITH_BODY), ...errors };
  return {
    ...{ operationId: id, summary },
    ...(description === undefined ? {} : { description }),
    ...(inPath.length + query.length === 0 ? {} : { parameters: [...inPath, ...query] }),
    ...(body === undefined ? {} : { requestBody: { required: true, content: json(ref(body)) } }),
    responses: {
      200: { description: 'Done.', content: contentOf(answer) },
      ...Object.fromEntries(
        Object.entries(failures).map(([status, said]) => [status, { description: said, content: json(ref('Error')) }]),
      ),
    },
  };
}

function contentOf(answer: Operation['answer']): Schema {
  if (answer !== 'events') return json(typeof answer === 'string' ? ref(answer) : answer);
  const data = {
    begin: ref('EventBegin'),
    state: ref('EventState'),
    live: ref('EventLive'),
    events: ref('EventEvents'),
  };
  // OpenAPI 3.1 has no words for the data of each event.
  return { 'text/event-stream': { schema: { type: 'string' }, 'x-event-data': data } };
}

function queryParameter(name: string, description: string, schema: Schema): Schema {
  return { name, in: 'query', description, schema };
}

function json(schema: Schema): Schema {
  return { 'application/json': { schema } };
}
