/**
 * The bodies of requests and answers as JSON Schema (2020-12). The server refuses unknown fields, as
 * `additionalProperties: false` says; clients should ignore unknown fields of answers.
 */
import {
  CHECKS_MAX,
  DATA_BYTES_MAX,
  DEPTH_MAX,
  FORCED_BY_BYTES_MAX,
  FORCED_REASON_BYTES_MAX,
  LOCK_DELAY_MAX_MS,
  PERMITS_MAX,
  REASON_BYTES_MAX,
  REVOKE_MAX_MS,
  REVOKER_BYTES_MAX,
  SHARERS_MAX,
  TOKEN_BYTES_MAX,
} from '@remora/lock';
import { REQUEST_ID_MAX } from '../../lock/lock-requests.ts';
import { TOKEN_LENGTH_MIN, TTL_MAX_MS, TTL_MIN_MS, WAIT_MAX_MS } from '../acquire-request.ts';
import { ACCESS_SCHEMAS } from './access-schemas.ts';
import { CLUSTER_SCHEMAS } from './cluster-schemas.ts';
import { HISTORY_SCHEMAS } from './history-schemas.ts';
import { KV_ERROR_FIELDS, KV_SCHEMAS } from './kv-schemas.ts';
import { LOCK_VERSION, name, namespace, VERSION_MAX, version } from './lock-fields.ts';
import { answer, bytes, count, duration, event, object, refTo, type Schema, text } from './parts.ts';

export function ref(name: keyof typeof SCHEMAS): Schema {
  return refTo(name);
}

const session = text('The id of a session. Opaque.', { pattern: '^[0-9a-f]+\\.[0-9]+$' });
const token = text('The secret of the owner: unique for each acquire, and never shown to other clients.', {
  minLength: 1,
  maxLength: TOKEN_BYTES_MAX,
});
const ownerId = text(
  'Distinguishes the owners of one session. It is derived from the token, which cannot be derived from it.',
);
const ttl = duration('How long the session outlives its last renewal. Default: 30 s.', {
  min: TTL_MIN_MS,
  max: TTL_MAX_MS,
});
const attributes = {
  type: 'object',
  additionalProperties: { type: 'string' },
  description: 'Shown with the session. At most 16 entries, and 4 KiB in all.',
};
const ttlMs = count('How long the session outlives its last renewal, as granted.');
const validMs = count(
  'How long the holder can rely on the session if clocks drift by up to 5 %: from when it sent the renewal; after an acquire, ' +
    'from when it got the answer.',
);
const lockTimeMs = count(
  'Wall time of the grant at the server, in ms since 1970, for display. 0: a barrier was passed.',
);
const data = bytes(`Shown with the lock. At most ${DATA_BYTES_MAX} bytes.`);
const depth = count('How often the owner has entered the lock.', { minimum: 1, maximum: DEPTH_MAX });
const keptData = bytes('The data that an earlier holder left with the lock.');
const forced = answer({
  atMs: count('Wall time of the server, in ms since 1970.'),
  by: text('As sent with the forced release.'),
  reason: text('As sent with the forced release.'),
  version: count('The version of the newest grant that was ended.'),
});
const revocation = answer({
  revision: count('Distinguishes requests.'),
  version: count('Holders of grants up to this version are asked to release.'),
  by: text('As sent with the request.'),
  reason: text('As sent with the request.'),
  sinceMs: count('Wall time of the server, in ms since 1970.'),
});
const keepData = { type: 'boolean', description: 'Whether the data stay with the lock after the hold ends.' };
const capacity = count('The number of all permits of a semaphore.', { maximum: PERMITS_MAX });
const passing = count('The number of callers that wait at the barrier, outside of the queue.');
/** Fields of an answer that may be sent back; they are ignored. */
const echoed = { ttlMs, validMs, lockTimeMs, keptData };
const owner = { session, token };
const shownOwner = { session, ownerId };
/** The terms of a session. If a single lock is shown, also those of its first 16 holders. */
const terms = {
  ttlMs,
  remainingMs: count('The time until the session ends unless it is renewed.'),
  condition: {
    ...answer({
      heartbeatMs: count("The interval of the client's heartbeats."),
      serverMisses: count('The cluster ends the session after this many missed heartbeats.'),
      holderMisses: count('The client stops after this many heartbeats without an answer.'),
    }),
    description: 'The condition that client and cluster keep to; absent if the session has only a TTL.',
  },
};
const holder = {
  ...shownOwner,
  mode: { type: 'string', enum: ['exclusive', 'shared', 'permits'] },
  permits: count('The number of permits that it has.', { minimum: 1 }),
  version,
  depth,
  lockTimeMs,
  data,
  keepData,
  lockDelayMs: count('How long the lock stays blocked after the session has ended.'),
  delayed: { type: 'boolean', description: 'Whether the session has ended and the lock is still blocked.' },
};
const waiter = answer(
  {
    ...shownOwner,
    mode: { type: 'string', enum: ['exclusive', 'shared', 'permits', 'upgrade'] },
    permits: holder.permits,
    position: count('The place in the queue; 1 is next.', { minimum: 1 }),
    sinceMs: count('Wall time of the server when the waiter joined, in ms since 1970.'),
  },
  ['permits'],
);
const whose = text('The user who began it; empty: it was begun without a user. Absent: a lease of plain keys.');
const sessionState = { session, ...terms, attributes, owner: whose };
const sessionLock = answer(
  {
    ...{ namespace, name, ownerId, mode: { type: 'string', enum: ['exclusive', 'shared', 'permits', 'upgrade'] } },
    ...{ permits: holder.permits, version },
    position: count('Instead of the version if the session waits for the lock.', { minimum: 1 }),
    sinceMs: count(
      'Since when it holds the lock or waits for it: wall time of the server, in ms since 1970. Absent: not recorded.',
    ),
  },
  ['permits', 'version', 'position', 'sinceMs'],
);
const nowMs = count('The wall time of the answering node, in ms since 1970: it tells how long ago something was.');
const more = { type: 'boolean', description: 'Whether there are more entries.' };
const next = text('The value of `after` for the next page; use it unchanged.');
const revision = count('It grows with each change of the lock.');
const waitForOthers = duration('How long to wait for others to release or leave. Default: not at all.', {
  min: 0,
  max: WAIT_MAX_MS,
});
const HOLDER: Schema = { $ref: '#/components/schemas/Holder' };

const lock = {
  namespace,
  name,
  kind: { type: 'string', enum: ['exclusive', 'shared', 'semaphore'], description: 'How the lock is held.' },
  holders: { type: 'array', items: { $ref: '#/components/schemas/Holder' }, description: 'The first holders.' },
  holderCount: count('The number of all holders.'),
  waiters: {
    type: 'array',
    description: 'The first waiters, in the order of the queue.',
    items: waiter,
  },
  waiterCount: count('The number of all waiters.'),
  permits: count('For a semaphore: the number of permits held now.'),
  capacity,
  keptData,
  forced: { ...forced, description: 'The last forced release, if `by` or `reason` was set.' },
  passing,
};
const LOCK_OPTIONAL = ['permits', 'capacity', 'keptData', 'forced', 'passing'];

export const SCHEMAS = {
  ...ACCESS_SCHEMAS,
  ...CLUSTER_SCHEMAS,
  ...HISTORY_SCHEMAS,
  Acquire: object({
    ttl,
    wait: duration('How long to wait in the queue while others hold the lock. Default: not at all.', {
      min: 0,
      max: WAIT_MAX_MS,
    }),
    token: {
      ...token,
      minLength: TOKEN_LENGTH_MIN,
      description:
        'Unique for each acquire and hard to guess: a GUID. Any caller that knows it may release the lock. If you choose a ' +
        'token, you can repeat the call after a lost answer, at any node: it keeps its place in the queue, and its grant. ' +
        'Without a token, the call ends with its connection.',
    },
    session: {
      ...session,
      description:
        'The session that the lock belongs to; it requires a token. Default: the call opens a session for the lock.',
    },
    shared: { type: 'boolean', description: 'Shares the lock with other callers that share it. Default: exclusive.' },
    permits: count('The number of permits of a semaphore to acquire at once. Default: 1 if capacity is given.', {
      minimum: 1,
      maximum: PERMITS_MAX,
    }),
    capacity: {
      ...capacity,
      minimum: 1,
      description: 'The number of permits of the semaphore, if it is unused and has no set capacity.',
    },
    pass: {
      type: 'boolean',
      description:
        'Waits at a barrier until the lock has no holder, and holds nothing afterwards. If you choose a token, call release to ' +
        'confirm the answer, or let the session end.',
    },
    parties: count(
      'Enters a double barrier: shares the lock, and waits until so many callers do. Call leave to leave it.',
      {
        minimum: 1,
        maximum: SHARERS_MAX,
      },
    ),
    data,
    keepData,
    lockDelay: duration('How long the lock stays blocked if the session ends without a release. Default: not at all.', {
      min: 0,
      max: LOCK_DELAY_MAX_MS,
    }),
    attributes,
  }),
  Grant: answer({ ...owner, version, ...echoed }, ['keptData']),
  Upgrade: object({ ...owner, version, ...echoed, wait: waitForOthers }, ['session', 'token', 'version']),
  Downgrade: object({ ...owner, version, ...echoed }, ['session', 'token', 'version']),
  Leave: object({ ...owner, version, ...echoed, wait: waitForOthers }, ['session', 'token', 'version']),
  Left: answer({
    version: count('The version of the round: the same for all that leave together.', { maximum: VERSION_MAX }),
  }),
  Renew: object({ ...owner, version, ...echoed }, ['session', 'version']),
  Release: object({ ...owner, version, ...echoed }, ['token']),
  Released: answer(
    {
      released: {
        type: 'boolean',
        description: 'False if the lock was not held any more; a place in the queue is given up in any case.',
      },
      code: text('Why the lock was not held.', { enum: ['LOCK_NOT_HELD', 'LOCK_WRONG_OWNER', 'SESSION_EXPIRED'] }),
    },
    ['code'],
  ),
  ForceRelease: object({
    requestId: text(
      'A new GUID, so that you can repeat the call after a lost answer: within half a minute it is carried out once, however ' +
        'often it is sent. Without it, a repeated call takes the lock from later holders, too.',
      { minLength: 1, maxLength: REQUEST_ID_MAX },
    ),
    upToVersion: count('Only grants up to this version end; 409 `LOCK_NOT_HELD` if there are only later ones.', {
      minimum: 1,
    }),
    by: text('Who forces the release. `by` and `reason` are recorded with the lock if one of them is set.', {
      maxLength: FORCED_BY_BYTES_MAX,
    }),
    reason: text('Why.', { maxLength: FORCED_REASON_BYTES_MAX }),
  }),
  Revoke: object({
    for: duration('How long the request stands.', { min: 1, max: REVOKE_MAX_MS }),
    by: text('Who asks, for display.', { maxLength: REVOKER_BYTES_MAX }),
    reason: text('Why.', { maxLength: REASON_BYTES_MAX }),
  }),
  Revoking: answer({
    version: { ...version, description: 'Holders of grants up to this version are asked to release.' },
  }),
  SetData: object({ ...owner, version, ...echoed, data }, ['session', 'token', 'version', 'data']),
  DataSet: answer({ version }),
  SetDepth: object({ ...owner, version, ...echoed, depth }, ['session', 'token', 'version', 'depth']),
  DepthSet: answer({ version, depth }),
  Forgotten: answer({ forgotten: { type: 'boolean', description: 'False if there was none.' } }),
  ForceReleased: answer({ version: { ...version, description: 'Of the grant that was ended.' } }),
  SetCapacity: object({ capacity: { ...capacity, description: '0 removes the set capacity.' } }, ['capacity']),
  Capacity: answer({ permits: count('The number of permits held now; it may be above the capacity.'), capacity }),
  OpenSession: object({ ttl, attributes }),
  RenewSession: object({ session, ttlMs, validMs }),
  Session: answer({ session, ttlMs, validMs }),
  SessionState: answer({ ...sessionState, locks: { type: 'array', items: sessionLock }, more }, ['condition', 'owner']),
  Sessions: answer(
    {
      sessions: { type: 'array', items: answer(sessionState, ['condition', 'owner']) },
      more,
      next,
    },
    ['next'],
  ),
  Closed: answer({ closed: { type: 'boolean', description: 'False if the session had ended before.' } }),
  Check: object(
    {
      checks: {
        type: 'array',
        minItems: 1,
        maxItems: CHECKS_MAX,
        items: LOCK_VERSION,
      },
    },
    ['checks'],
  ),
  Checked: answer({
    current: {
      type: 'array',
      items: { type: 'boolean' },
      description:
        'In the order of the checks. The locks of one range are checked at one moment after the call started.',
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
  Lock: answer(lock, LOCK_OPTIONAL),
  ShownLock: answer({ ...lock, nowMs }, LOCK_OPTIONAL),
  Locks: answer(
    {
      locks: { type: 'array', items: { $ref: '#/components/schemas/Lock' } },
      more,
      next,
      nowMs,
    },
    ['next'],
  ),
  Namespaces: answer({ namespaces: { type: 'array', items: namespace }, more, next }, ['next']),
  SessionLocks: answer({
    holds: { type: 'array', items: sessionLock },
    waits: { type: 'array', items: sessionLock },
    more: { ...more, description: 'Whether there are more: each range reports up to 1,000 locks of a session.' },
    nowMs,
  }),
  EventBegin: answer({
    from: bytes('Discard the states of locks from this name on …'),
    to: bytes('… up to this one, exclusively; new states follow. Empty: no bound.'),
  }),
  EventState: answer({
    ...{ namespace, name, revision },
    state: {
      description: 'null: the lock has no holders and no waiters.',
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
      event('acquired, upgraded', {
        holder: HOLDER,
        waited: { type: 'boolean', description: 'Whether the holder waited in the queue.' },
      }),
      event('downgraded, changed', { holder: HOLDER }),
      event('released, expired, forced', { ...shownOwner, version }),
      event('queued', { waiter }),
      event('left', { ...shownOwner, code: text('Why the wait has ended.') }),
      event('capacity', { capacity }),
      event('kept', { data: { oneOf: [keptData, { type: 'null' }] } }),
      event('revoking', { revocation: { oneOf: [revocation, { type: 'null' }] } }),
      event('passing', { count: passing }),
      event('recorded', { forced: { oneOf: [forced, { type: 'null' }] } }),
    ],
  },
  ...KV_SCHEMAS,
  Error: answer({
    error: {
      ...answer(
        {
          code: text('For programs to branch on; a code never changes its meaning.'),
          message: text('For people: what is wrong, and what is expected.'),
          retry: {
            type: 'string',
            enum: ['no', 'same', 'later'],
            description:
              'no: the call would be refused again; same: repeat it unchanged, at any node; later: repeat it after a pause.',
          },
          holder: { $ref: '#/components/schemas/Holder' },
          ...KV_ERROR_FIELDS,
        },
        ['holder', ...Object.keys(KV_ERROR_FIELDS)],
      ),
    },
  }),
} as const satisfies Readonly<Record<string, Schema>>;
