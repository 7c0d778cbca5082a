/**
 * The methods that clients may call over the Pipe: the SDK's protocol. It is RPC as between nodes (frames with all
 * calls of a loop turn), with these methods, over the stream of frames of `node/pipe-link.ts`. Public: a change that an
 * older peer would misread gets a new method name.
 */
import { Command } from '../internal/command.ts';
import { CommandResult } from '../internal/command-result.ts';
import { CONDITIONS_OF_NODE_MAX, CONDITIONS_TOLD_MAX, HealthCondition } from '../internal/health/health.ts';
import { KvEvent } from '../internal/kv-types.ts';
import { LockNewsKind } from '../internal/lock-kinds.ts';
import { ClusterView } from '../internal/master-api.ts';
import { Query, QueryResult } from '../internal/query.ts';
import { RequestId, WATCH_FLAGS } from '../internal/range-api.ts';
import { method } from '../rpc/method.ts';
import {
  added,
  bool,
  bytes,
  field,
  list,
  maybe,
  ms,
  nothing,
  optional,
  sealed,
  struct,
  text,
  textOf,
  uint,
  union,
  variant,
  yes,
} from '../schema/kinds.ts';
import type { Infer, Kind } from '../schema/shape.ts';

/** The length of a `traceparent` of its present version. */
const TRACEPARENT_CHARACTERS = 55;

const TRACE = added(
  field(optional(textOf({ max: TRACEPARENT_CHARACTERS })), "The caller's W3C trace context: the `traceparent`."),
  { since: '0.1.0', absent: undefined, skippable: 'the request is then not traced' },
);

export interface PipeCommand {
  readonly command: Command;
  readonly requestId: string;
  readonly timeoutMs: number;
  readonly deadlineMs?: number | undefined;
  readonly waitMs?: number | undefined;
  readonly again?: true | undefined;
  readonly trace?: string | undefined;
}

export const PipeCommand: Kind<PipeCommand> = struct('pipe command', {
  requestId: field(RequestId, 'Names the command: a retry, through whichever gateway, is applied once.'),
  timeoutMs: field(ms, 'The gateway answers within this many milliseconds. At most 60 s.'),
  deadlineMs: field(
    optional(ms),
    'Range time after which the command is refused; the client fixes it together with the request id, from the `rangeTimeMs` of earlier replies, and repeats it in each retry. Absent: the gateway reckons it.',
  ),
  waitMs: field(
    optional(ms),
    'For a blocking lock acquire: how many milliseconds to wait in the queue; 0: as long as the session lives.',
  ),
  command: field(sealed(Command), 'The command. Unknown fields are refused.'),
  again: added(
    field(
      optional(yes),
      'The client has sent this request id before, and the answer was lost. If it may not send the command any more, it still learns the outcome, or that this is unknown.',
    ),
    { since: '0.1.0', absent: undefined, skippable: 'the gateway then finds most earlier attempts by itself' },
  ),
  trace: TRACE,
});

export interface PipeQuery {
  readonly query: Query;
  readonly timeoutMs: number;
  readonly trace?: string | undefined;
}

export const PipeQuery: Kind<PipeQuery> = struct('pipe query', {
  timeoutMs: field(ms, 'The gateway answers within this many milliseconds. At most 60 s.'),
  query: field(sealed(Query), 'The query. Unknown fields are refused.'),
  trace: TRACE,
});

export interface PipeReply<Result> {
  readonly revision: number;
  readonly raftTerm: number;
  readonly rangeTimeMs: number | undefined;
  readonly result: Result;
  readonly queuedAt?: number | undefined;
}

function pipeReply<Result>(name: string, result: Kind<Result>): Kind<PipeReply<Result>> {
  return struct(name, {
    revision: field(uint, 'The last revision.'),
    raftTerm: field(uint, 'The term of the replica that answered.'),
    rangeTimeMs: field(optional(ms), 'The time of the ranges; absent when the gateway does not know it.'),
    result: field(result, 'The result.'),
    queuedAt: added(
      field(
        optional(uint),
        'Of an acquire that had to wait: the place in the queue at which it joined, 1 for the next.',
      ),
      { since: '0.1.0', absent: undefined, skippable: 'an answer, for display' },
    ),
  }) as unknown as Kind<PipeReply<Result>>;
}

export const pipeCommand = method('kv.command', {
  meaning: 'Executes a command.',
  callers: 'clients',
  request: PipeCommand,
  reply: pipeReply('pipe reply to a command', CommandResult),
  changes: () => true,
});

export const pipeQuery = method('kv.query', {
  meaning: 'Answers a query.',
  callers: 'clients',
  request: PipeQuery,
  reply: pipeReply('pipe reply to a query', QueryResult),
});

export const PipeWatchRequest = union('pipe watch request', 'kind', {
  create: variant(0, {
    key: field(bytes, 'The key, or the first one of a span.'),
    end: maybe(bytes, 'The key behind the last one; empty: to the last key; absent: one key.'),
    startRevision: field(uint, 'First revision to report; 0: from now on.'),
    flags: WATCH_FLAGS,
  }),
  /** Asks for a message with the current revision even when there are no events. */
  progress: variant(1, {}),
});
export type PipeWatchRequest = Infer<typeof PipeWatchRequest>;

/**
 * A watch ends with the stream's error. If its start was compacted, that is `COMPACTED` with `compactRevision` in the
 * details.
 */
export const PipeWatchMessage = union('pipe watch message', 'kind', {
  created: variant(0, { revision: field(uint, 'The revision that it begins behind.') }),
  events: variant(1, {
    revision: field(uint, 'Nothing at or below it is still to come.'),
    events: field(list(KvEvent), 'The events; may be empty.'),
  }),
});
export type PipeWatchMessage = Infer<typeof PipeWatchMessage>;

export const pipeWatch = method('watch', {
  meaning: 'One watch.',
  callers: 'clients',
  request: PipeWatchRequest,
  reply: PipeWatchMessage,
  stream: true,
});

export const PipeLockWatchRequest = struct('pipe lock watch', {
  namespace: field(text, 'The namespace of the locks.'),
  name: field(bytes, 'The name of one lock (`single`), or the common prefix of all names.'),
  single: field(bool, 'Whether it is about one lock.'),
});
export interface PipeLockWatchRequest extends Infer<typeof PipeLockWatchRequest> {}

export const pipeLockWatch = method('lock.watch', {
  meaning: 'The events of one lock, or of all locks with a common prefix of their names.',
  callers: 'clients',
  request: PipeLockWatchRequest,
  reply: LockNewsKind,
  stream: true,
});

export const pipeView = method('cluster.view', {
  meaning: 'Cluster membership and routes, as the gateway last heard of them.',
  callers: 'clients',
  request: nothing,
  reply: ClusterView,
});

export const GATEWAYS_TOLD_MAX = 64;
/** A host name has at most 253 characters, plus brackets, colon and port. */
const ADDRESS_CHARACTERS_MAX = 300;

/** The gateways of the cluster. */
export const PipeGateways = struct('gateways', {
  cluster: field(
    text,
    "Text that gateways of this cluster have in common, for the hello (`PIPE_CLUSTER`); it does not reveal the cluster's id.",
  ),
  addresses: field(
    list(textOf({ max: ADDRESS_CHARACTERS_MAX }), GATEWAYS_TOLD_MAX),
    'As the other gateways advertise themselves, `host:port`.',
  ),
});
export interface PipeGateways extends Infer<typeof PipeGateways> {}

export const pipeGateways = method('gateways', {
  meaning: 'Where else a client of this cluster may connect.',
  callers: 'clients',
  request: nothing,
  reply: PipeGateways,
});

/** How a client says who it is. */
export const PipeLogIn = union('log-in', 'with', {
  password: variant(0, { user: field(text, 'The name of the user.'), password: field(text, 'The password.') }),
  token: variant(1, { token: field(text, 'A token of an earlier log-in, over whichever connection.') }),
});
export type PipeLogIn = Infer<typeof PipeLogIn>;

export const PipeLoggedIn = struct('logged in', {
  token: field(text, 'For further log-ins; empty while authentication is off, when nobody needs one.'),
  lifeMs: field(ms, 'How long a token lives from when it is given. Clients log in again before.'),
});
export interface PipeLoggedIn extends Infer<typeof PipeLoggedIn> {}

export const pipeLogIn = method('logIn', {
  meaning: 'Says who the client is: later calls of this connection are made in the name of that user.',
  callers: 'clients',
  request: PipeLogIn,
  reply: PipeLoggedIn,
});

export const pipeConditions = method('conditions', {
  meaning: "What is wrong with the cluster, and with the gateway's own node, the worst first.",
  callers: 'clients',
  request: nothing,
  reply: list(HealthCondition, CONDITIONS_TOLD_MAX + CONDITIONS_OF_NODE_MAX),
});
