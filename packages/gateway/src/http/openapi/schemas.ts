/**
 * What goes over HTTP, as JSON Schema (2020-12). `additionalProperties: false` is what the server does with fields that it
 * does not know; a client of answers should not mind new ones.
 */
import {
  CHECKS_MAX,
  DATA_BYTES_MAX,
  DEPTH_MAX,
  FORCED_BY_BYTES_MAX,
  FORCED_REASON_BYTES_MAX,
  LOCK_DELAY_MAX_MS,
  NAME_BYTES_MAX,
  NAMESPACE_BYTES_MAX,
  PERMITS_MAX,
  REASON_BYTES_MAX,
  REVOKE_MAX_MS,
  REVOKER_BYTES_MAX,
  SHARERS_MAX,
  TOKEN_BYTES_MAX,
} from '@remora/lock';
import { REQUEST_ID_MAX } from '../../lock/lock-requests.ts';
import { TOKEN_LENGTH_MIN, TTL_MAX_MS, TTL_MIN_MS, WAIT_MAX_MS } from '../acquire-request.ts';

/** As much of JSON Schema as is used here. */
export interface Schema {
  readonly [keyword: string]: unknown;
}

export function ref(name: keyof typeof SCHEMAS): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

const VERSION_MAX = Number.MAX_SAFE_INTEGER;

function object(properties: Readonly<Record<string, Schema>>, required: readonly string[] = []): Schema {
  return { type: 'object', properties, required, additionalProperties: false };
}

/** All that it has is always there. */
function answer(properties: Readonly<Record<string, Schema>>, optional: readonly string[] = []): Schema {
  return object(
    properties,
    Object.keys(properties).filter((name) => !optional.includes(name)),
  );
}

function event(types: string, properties: Readonly<Record<string, Schema>>): Schema {
  return answer({ type: { type: 'string', enum: types.split(', ') }, ...properties });
}

function text(description: string, more: Schema = {}): Schema {
  return { type: 'string', description, ...more };
}

function count(description: string, more: Schema = {}): Schema {
  return { type: 'integer', minimum: 0, description, ...more };
}

function duration(description: string, { min, max }: { readonly min: number; readonly max: number }): Schema {
  return {
    description,
    oneOf: [
      { type: 'string', pattern: '^(0|(\\d+(\\.\\d+)?(ms|s|m|h|d))+)$', examples: ['5s', '1m30s', '250ms'] },
      { type: 'number', minimum: min, maximum: max, description: 'In ms.' },
    ],
  };
}

function bytes(description: string, more: Schema = {}): Schema {
  return {
    description,
    ...more,
    oneOf: [
      { type: 'string', description: 'Text, which stands for its UTF-8.' },
      object({ base64: { type: 'string', contentEncoding: 'base64' } }, ['base64']),
    ],
  };
}

const session = text('Names a session. Opaque.', { pattern: '^[0-9a-f]+\\.[0-9]+$' });
const token = text('The secret of the owner: unique for each acquire, and shown to nobody else.', {
  minLength: 1,
  maxLength: TOKEN_BYTES_MAX,
});
const ownerId = text(
  'Tells the owners of one session apart. Follows from the token; the token does not follow from it.',
);
const ttl = duration('How long the session outlives its last renewal. 30 s unless given.', {
  min: TTL_MIN_MS,
  max: TTL_MAX_MS,
});
const attributes = {
  type: 'object',
  additionalProperties: { type: 'string' },
  description: 'Shown with the session. At most 16, and 4 KiB in all.',
};
const ttlMs = count('How long the session outlives its last renewal, as granted.');
const validMs = count(
  'How long the holder may count on it, with clocks that are off by 5 %: from when it sent the renewal; after an acquire ' +
    'from when it was answered.',
);
const version = count('The fencing version. Grows with each grant of the lock; pass it to what the lock protects.', {
  maximum: VERSION_MAX,
});
const lockTimeMs = count(
  'Wall time of the grant at the server, in ms since 1970; for display. 0: a barrier was passed.',
);
const namespace = text('Separates users of one cluster.', { minLength: 1, maxLength: NAMESPACE_BYTES_MAX });
const name = bytes(`1 to ${NAME_BYTES_MAX} bytes.`);
const data = bytes(`Shown with the lock. At most ${DATA_BYTES_MAX} bytes.`);
const depth = count('How often its owner has entered it.', { minimum: 1, maximum: DEPTH_MAX });
const keptData = bytes('What an earlier holder left with the lock.');
const forced = answer({
  atMs: count('Wall time of the server, in ms since 1970.'),
  by: text('As whoever did it said.'),
  reason: text('As whoever did it said.'),
  version: count('Of the newest grant that was ended.'),
});
const revocation = answer({
  revision: count('Tells requests apart.'),
  version: count('Grants up to this version are asked for.'),
  by: text('As whoever asks said.'),
  reason: text('As whoever asks said.'),
  sinceMs: count('Wall time of the server, in ms since 1970.'),
});
const keepData = { type: 'boolean', description: 'The data stay with the lock when it is held no longer.' };
const capacity = count('How many permits a semaphore has in all.', { maximum: PERMITS_MAX });
/** Of what was answered, and may be sent back as it is. */
const passing = count('How many wait until it is free, or until enough share it, without queueing for it.');
const echoed = { ttlMs, validMs, lockTimeMs, keptData };
const owner = { session, token };
const shownOwner = { session, ownerId };
/** Of a session; with a holder, where one lock is shown, for the first 16 of them. */
const terms = {
  ttlMs,
  remainingMs: count('Left before it ends unless it is renewed.'),
  condition: {
    ...answer({
      heartbeatMs: count('How often its client lets the cluster know that it is there.'),
      serverMisses: count('The cluster ends it when it has missed so many.'),
      holderMisses: count('Its client stops when so many were not answered.'),
    }),
    description: 'What was agreed about heartbeats, where anything was.',
  },
};
const holder = {
  ...shownOwner,
  mode: { type: 'string', enum: ['exclusive', 'shared', 'permits'] },
  permits: count('How many of them it has.', { minimum: 1 }),
  version,
  depth,
  lockTimeMs,
  data,
  keepData,
  lockDelayMs: count('For how long it keeps others off after its session has ended.'),
  delayed: { type: 'boolean', description: 'Its session has ended, and that time is not over.' },
};
const waiter = answer(
  {
    ...shownOwner,
    mode: { type: 'string', enum: ['exclusive', 'shared', 'permits', 'upgrade'] },
    permits: holder.permits,
    position: count('1 is next.', { minimum: 1 }),
    sinceMs: count('Wall time of the server when it joined, in ms since 1970.'),
  },
  ['permits'],
);
const sessionState = { session, ...terms, attributes };
const sessionLock = answer(
  {
    ...{ namespace, name, ownerId, mode: { type: 'string', enum: ['exclusive', 'shared', 'permits', 'upgrade'] } },
    ...{ permits: holder.permits, version },
    position: count('Of one that waits, in place of the version.', { minimum: 1 }),
  },
  ['permits', 'version', 'position'],
);
const more = { type: 'boolean', description: 'There are more.' };
const next = text('Ask again with after=… this, as it is.');
const revision = count('Grows with each change of the lock.');
const waitForOthers = duration('How long to wait for others to let go; not at all unless given.', {
  min: 0,
  max: WAIT_MAX_MS,
});
const HOLDER: Schema = { $ref: '#/components/schemas/Holder' };

export const SCHEMAS = {
  Acquire: object({
    ttl,
    wait: duration('How long to stay in the queue while others have it; not at all unless given.', {
      min: 0,
      max: WAIT_MAX_MS,
    }),
    token: {
      ...token,
      minLength: TOKEN_LENGTH_MIN,
      description:
        'Unique for each acquire, and not to be guessed: a GUID. Whoever knows it may release the lock. With one of your own the call can be repeated after a lost answer, at ' +
        'any node: it keeps its place in the queue, and its grant. Without, the call ends with its connection.',
    },
    session: {
      ...session,
      description:
        'A session of yours that it belongs to; token is required then. Unless given, it has one of its own.',
    },
    shared: { type: 'boolean', description: 'Together with others who share it; otherwise alone.' },
    permits: count('So many permits of a semaphore, at once; 1 if only capacity is given.', {
      minimum: 1,
      maximum: PERMITS_MAX,
    }),
    capacity: {
      ...capacity,
      minimum: 1,
      description: 'How many permits the semaphore has, if nobody uses it and nobody has set its capacity.',
    },
    pass: {
      type: 'boolean',
      description:
        'Only waits until nobody holds it: a barrier. Nothing is held then; with a token of your own, release says that the ' +
        'answer has come, or the end of the session does.',
    },
    parties: count('Enters a double barrier: shares the lock, and waits until so many do. leave ends that.', {
      minimum: 1,
      maximum: SHARERS_MAX,
    }),
    data,
    keepData,
    lockDelay: duration(
      'For how long others are kept off when the session ends without a release; none unless given.',
      {
        min: 0,
        max: LOCK_DELAY_MAX_MS,
      },
    ),
    attributes,
  }),
  Grant: answer({ ...owner, version, ...echoed }, ['keptData']),
  Upgrade: object({ ...owner, version, ...echoed, wait: waitForOthers }, ['session', 'token', 'version']),
  Downgrade: object({ ...owner, version, ...echoed }, ['session', 'token', 'version']),
  Leave: object({ ...owner, version, ...echoed, wait: waitForOthers }, ['session', 'token', 'version']),
  Left: answer({ version: count('Of the round: the same one for all who left together.', { maximum: VERSION_MAX }) }),
  Renew: object({ ...owner, version, ...echoed }, ['session', 'version']),
  Release: object({ ...owner, version, ...echoed }, ['token']),
  Released: answer(
    {
      released: { type: 'boolean', description: 'False: it was not held any more; a place in the queue is left.' },
      code: text('Why it was not held.', { enum: ['LOCK_NOT_HELD', 'LOCK_WRONG_OWNER', 'SESSION_EXPIRED'] }),
    },
    ['code'],
  ),
  ForceRelease: object({
    requestId: text(
      'A new GUID, so that this can be repeated after a lost answer: within half a minute it is done once, however often it ' +
        'is sent. Without it a repetition takes the lock from whoever has come since.',
      { minLength: 1, maxLength: REQUEST_ID_MAX },
    ),
    by: text('Who does it; stays on record with the lock, if either is said.', { maxLength: FORCED_BY_BYTES_MAX }),
    reason: text('Why.', { maxLength: FORCED_REASON_BYTES_MAX }),
  }),
  Revoke: object({
    for: duration('For how long it is asked; then the request is void.', { min: 1, max: REVOKE_MAX_MS }),
    by: text('Who asks, for people.', { maxLength: REVOKER_BYTES_MAX }),
    reason: text('Why.', { maxLength: REASON_BYTES_MAX }),
  }),
  Revoking: answer({ version: { ...version, description: 'Grants up to this version are asked for.' } }),
  SetData: object({ ...owner, version, ...echoed, data }, ['session', 'token', 'version', 'data']),
  DataSet: answer({ version }),
  SetDepth: object({ ...owner, version, ...echoed, depth }, ['session', 'token', 'version', 'depth']),
  DepthSet: answer({ version, depth }),
  Forgotten: answer({ forgotten: { type: 'boolean', description: 'False: there was nothing.' } }),
  ForceReleased: answer({ version: { ...version, description: 'Of the grant that was ended.' } }),
  SetCapacity: object({ capacity: { ...capacity, description: '0 forgets what was set.' } }, ['capacity']),
  Capacity: answer({ permits: count('Held at the moment; may be above the capacity.'), capacity }),
  OpenSession: object({ ttl, attributes }),
  RenewSession: object({ session, ttlMs, validMs }),
  Session: answer({ session, ttlMs, validMs }),
  SessionState: answer({ ...sessionState, locks: { type: 'array', items: sessionLock }, more }, ['condition']),
  Sessions: answer(
    {
      sessions: { type: 'array', items: answer(sessionState, ['condition']) },
      more,
      next,
    },
    ['next'],
  ),
  Closed: answer({ closed: { type: 'boolean', description: 'False: it was over.' } }),
  Check: object(
    {
      checks: {
        type: 'array',
        minItems: 1,
        maxItems: CHECKS_MAX,
        items: object({ namespace, name, version }, ['name', 'version']),
      },
    },
    ['checks'],
  ),
  Checked: answer({
    current: {
      type: 'array',
      items: { type: 'boolean' },
      description: 'In the order asked, as of one moment after the call began for each range.',
    },
  }),
  Holder: answer({ ...holder, ...terms }, [
    'mode',
    'permits',
    'keepData',
    'lockDelayMs',
    'delayed',
    'ttlMs',
    'remainingMs',
    'condition',
  ]),
  Lock: answer(
    {
      namespace,
      name,
      kind: { type: 'string', enum: ['exclusive', 'shared', 'semaphore'], description: 'How it is held.' },
      holders: { type: 'array', items: { $ref: '#/components/schemas/Holder' }, description: 'The first of them.' },
      holderCount: count('How many hold it in all.'),
      waiters: {
        type: 'array',
        description: 'The first of the queue, in order.',
        items: waiter,
      },
      waiterCount: count('How many wait in all.'),
      permits: count('Of a semaphore: held at the moment.'),
      capacity,
      keptData,
      forced: { ...forced, description: 'Who has taken it by force last, where that was said.' },
      passing,
    },
    ['permits', 'capacity', 'keptData', 'forced', 'passing'],
  ),
  Locks: answer(
    {
      locks: { type: 'array', items: { $ref: '#/components/schemas/Lock' } },
      more,
      next,
    },
    ['next'],
  ),
  EventBegin: answer({
    from: bytes('What was told of locks from this name on …'),
    to: bytes('… up to before this one may be out of date; their states follow. Empty: no bound.'),
  }),
  EventState: answer({
    ...{ namespace, name, revision },
    state: {
      description: 'null: nobody holds it or waits for it.',
      oneOf: [{ $ref: '#/components/schemas/Lock' }, { type: 'null' }],
    },
  }),
  EventLive: answer({}),
  EventEvents: answer({
    ...{ namespace, name, revision },
    events: { type: 'array', minItems: 1, items: { $ref: '#/components/schemas/LockEvent' } },
  }),
  LockEvent: {
    oneOf: [
      event('acquired, upgraded', { holder: HOLDER, waited: { type: 'boolean', description: 'It was in the queue.' } }),
      event('downgraded, changed', { holder: HOLDER }),
      event('released, expired, forced', { ...shownOwner, version }),
      event('queued', { waiter }),
      event('left', { ...shownOwner, code: text('Why it waits no longer.') }),
      event('capacity', { capacity }),
      event('kept', { data: { oneOf: [keptData, { type: 'null' }] } }),
      event('revoking', { revocation: { oneOf: [revocation, { type: 'null' }] } }),
      event('passing', { count: passing }),
      event('recorded', { forced: { oneOf: [forced, { type: 'null' }] } }),
    ],
  },
  Error: answer({
    error: {
      ...answer(
        {
          code: text('What programs branch on; never changes its meaning.'),
          message: text('For people: what is wrong, and what would be right.'),
          retry: {
            type: 'string',
            enum: ['no', 'same', 'later'],
            description:
              'no: it would be refused again; same: repeat it as it is, at any node; later: the same, after a pause.',
          },
          holder: { $ref: '#/components/schemas/Holder' },
        },
        ['holder'],
      ),
    },
  }),
} as const satisfies Readonly<Record<string, Schema>>;
