import type { Identification, PlainNeed, Principal } from '@remora/auth';
import { type Clock, ServiceError, toServiceError } from '@remora/base';
import type { LockNews } from '@remora/lock';
import {
  type Caller,
  type ClientConnection,
  createRpcRegistry,
  DEFAULT_SERVER_LIMITS,
  type FrameLink,
  GATEWAYS_TOLD_MAX,
  type HealthCondition,
  type HeldBytes,
  type NodeState,
  type PipeLockWatchRequest,
  type PipeReply,
  type PipeWatchMessage,
  type PipeWatchRequest,
  pipeCommand,
  pipeConditions,
  pipeGateways,
  pipeLockWatch,
  pipeLogIn,
  pipeQuery,
  pipeView,
  pipeWatch,
  type RpcDispatcher,
  type ServedLink,
  type ServerLimits,
  type StreamContext,
  type StreamSink,
  serveLink,
} from '@remora/protocol';
import type { Backend, BackendReply, WatchControl } from '../backend.ts';
import { REQUEST_LIMITS, type RequestLimits } from '../request-limits.ts';
import { logInPipe } from './pipe-log-in.ts';
import { validatePipeCommand, validatePipeLockWatch, validatePipeQuery, validatePipeWatch } from './validate.ts';

/** Limits of one connection; requests above them are answered with RESOURCE_EXHAUSTED. */
export const PIPE_LIMITS: ServerLimits = {
  ...DEFAULT_SERVER_LIMITS,
  callsMax: 4_096,
  queueBytesMax: 16 << 20,
  heldBytesMax: 64 << 20,
};
/** Bytes of requests that all connections together may hold. */
export const PIPE_HELD_BYTES_MAX = 256 << 20;

/** To look at the cluster and at what is wrong with it. */
const LOOKS: readonly PlainNeed[] = [{ type: 'anyUser', withoutMasters: true }];

export interface PipeRegistryOptions {
  readonly identification: Identification;
  readonly requestLimits?: RequestLimits | undefined;
  /** The id that all gateways of a cluster have in common (`PipeGateways`). */
  readonly cluster?: string | undefined;
  /** Returns what is wrong with the cluster and this node. Default: nothing. */
  readonly conditions?: (() => readonly HealthCondition[]) | undefined;
}

/** Makes the Pipe's methods on a backend; one registry serves all connections. */
export function createPipeRegistry(backend: Backend, options: PipeRegistryOptions): RpcDispatcher {
  const { requestLimits = REQUEST_LIMITS, cluster = '', conditions = () => [], identification } = options;
  const principalOf = (caller: Caller): Principal | undefined => principalAt(identification, caller);
  const registry = createRpcRegistry();

  registry.handle(pipeCommand, (request, context, done) => {
    validatePipeCommand(request, requestLimits);
    // Field by field: copying an object costs as much as the rest of the way from here to a range.
    const { command, requestId, timeoutMs, deadlineMs, waitMs, again, trace } = request;
    const principal = principalOf(context.caller);
    const asked = { trace, requestId, timeoutMs, deadlineMs, waitMs, again, principal };
    const giveUp = backend.command(command, asked, (error, reply) => done(error, pipeReply(backend, reply)));
    context.onCancel(giveUp);
  });
  registry.handle(pipeQuery, (request, context, done) => {
    validatePipeQuery(request, requestLimits);
    const { query, timeoutMs, trace } = request;
    const asked = { timeoutMs, principal: principalOf(context.caller), trace };
    const giveUp = backend.query(query, asked, (error, reply) => done(error, pipeReply(backend, reply)));
    context.onCancel(giveUp);
  });
  registry.handle(pipeView, (_request, context, done) => {
    backend.check(principalOf(context.caller), LOOKS);
    done(undefined, backend.view());
  });
  registry.handle(pipeGateways, (_request, _context, done) =>
    done(undefined, { cluster, addresses: otherGateways(backend) }),
  );
  registry.handle(pipeConditions, (_request, context, done) => {
    backend.check(principalOf(context.caller), LOOKS);
    done(undefined, conditions());
  });
  registry.handle(pipeLogIn, (request, context, done) => {
    logInPipe(identification, context.caller, request).then(
      (loggedIn) => done(undefined, loggedIn),
      (error: unknown) => done(toServiceError(error), undefined),
    );
  });
  registry.handleStream(pipeWatch, (first, context) => openWatch(backend, principalOf, first, context));
  registry.handleStream(pipeLockWatch, (request, context) => openLockWatch(backend, principalOf, request, context));
  return registry;
}

type PrincipalOf = (caller: Caller) => Principal | undefined;

/** Who a connection of the Pipe belongs to now: a log-in counts before a certificate. */
function principalAt(identification: Identification, caller: Caller): Principal | undefined {
  return caller.kind === 'client' ? identification.identify(caller.connection) : undefined;
}

/** Returns the addresses of other gateways, nodes that are up first; not those of nodes that are down or removed. */
function otherGateways(backend: Backend): readonly string[] {
  const gateways = backend
    .view()
    .nodes.filter(({ descriptor: { nodeId, roles } }) => nodeId !== backend.nodeId && roles.includes('gateway'));
  const inState = (wanted: NodeState): string[] =>
    gateways.filter(({ state }) => state === wanted).map(({ descriptor }) => descriptor.clientAddress);
  return [...inState('up'), ...inState('suspect'), ...inState('draining')].slice(0, GATEWAYS_TOLD_MAX);
}

/** Serves one client's connection. */
export function servePipe(ports: {
  readonly link: FrameLink;
  readonly registry: RpcDispatcher;
  readonly clock: Clock;
  readonly connection: ClientConnection;
  readonly limits?: ServerLimits;
  /** Shared by all connections. */
  readonly held?: HeldBytes;
  readonly onClose?: () => void;
  /** Called for each call that is refused because too many are in flight. */
  readonly onBusy?: () => void;
  /** Called for each call that is refused as malformed. */
  readonly onMalformed?: () => void;
}): ServedLink {
  const { onClose, onBusy, onMalformed } = ports;
  return serveLink({
    link: ports.link,
    registry: ports.registry,
    clock: ports.clock,
    caller: { kind: 'client', connection: ports.connection },
    limits: ports.limits ?? PIPE_LIMITS,
    ...(ports.held === undefined ? {} : { held: ports.held }),
    ...(onClose === undefined ? {} : { onClose: () => onClose() }),
    ...(onBusy === undefined ? {} : { onBusy }),
    ...(onMalformed === undefined ? {} : { onMalformed }),
  });
}

/** Adds the time of the ranges, from which the client computes the deadlines of its commands. */
function pipeReply<Result>(backend: Backend, reply: BackendReply<Result> | undefined): PipeReply<Result> | undefined {
  if (reply === undefined) return undefined;
  // Field by field: copying an object costs as much as the rest of the way from here to the client.
  const { result, revision, raftTerm, queuedAt } = reply;
  return { result, revision, raftTerm, rangeTimeMs: backend.rangeTimeMs(), queuedAt };
}

/**
 * While the client is behind, the watch is paused at the backend, and catches up from history later: no events are
 * buffered.
 */
function openWatch(
  backend: Backend,
  principalOf: PrincipalOf,
  first: PipeWatchRequest,
  context: StreamContext<PipeWatchMessage>,
): StreamSink<PipeWatchRequest> {
  if (first.kind !== 'create')
    throw new ServiceError('INVALID_ARGUMENT', 'the first message of a watch must be create');
  validatePipeWatch(first);
  const { kind: _, ...options } = first;
  let control: WatchControl | undefined;
  let behind = false;

  function send(message: PipeWatchMessage): void {
    if (context.send(message) || behind) return;
    behind = true;
    control?.pause();
  }
  context.onDrain(() => {
    behind = false;
    control?.resume();
  });
  const principal = principalOf(context.caller);
  control = backend.watch(
    { ...options, principal },
    {
      onCreated: (revision) => send({ kind: 'created', revision }),
      onEvents: (events, revision) => send({ kind: 'events', events, revision }),
      onProgress: (revision) => send({ kind: 'events', events: [], revision }),
      onEnd: (error, compactRevision) => context.end(withCompactRevision(error, compactRevision)),
    },
  );
  if (behind) control.pause();
  return {
    onMessage(request) {
      if (request.kind === 'progress') control?.progress();
    },
    onClose() {
      control?.cancel();
    },
  };
}

/** While the client is behind, the watch is paused at the backend; it starts again with the states afterwards. */
function openLockWatch(
  backend: Backend,
  principalOf: PrincipalOf,
  request: PipeLockWatchRequest,
  context: StreamContext<readonly LockNews[]>,
): StreamSink<PipeLockWatchRequest> {
  validatePipeLockWatch(request);
  let behind = false;
  const control = backend.watchLocks(
    { ...request, principal: principalOf(context.caller) },
    (events) => {
      if (context.send(events) || behind) return;
      behind = true;
      control.pause();
    },
    (error) => context.end(error),
  );
  context.onDrain(() => {
    behind = false;
    control.resume();
  });
  return { onMessage() {}, onClose: () => control.cancel() };
}

function withCompactRevision(error: ServiceError, compactRevision: number): ServiceError {
  if (compactRevision === 0) return error;
  return new ServiceError(error.code, error.message, { details: { ...error.details, compactRevision }, cause: error });
}
