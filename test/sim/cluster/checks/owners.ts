/**
 * Checks that sessions belong to the users who began them (decision 91), in runs with authentication.
 *
 * SO1. A session is renewed for its owner only. After each grant somebody else tries to renew it, at the same gateway
 *      with the same numbers, and must be refused or find nothing.
 * SO2. What names a session as the owner of a lock is answered to the session's owner only.
 */
import type { Principal } from '@remora/auth';
import type { Backend, BackendDone, RequestOptions } from '@remora/gateway';
import type { Command, CommandResult, Query, QueryResult } from '@remora/protocol';
import { Violation } from '../../common/violation.ts';

const TRY_MS = 1_000;

interface Session {
  readonly lease: bigint;
  readonly incarnation: number;
}

/** Who owns which session, by the answers of all gateways. */
export class Owners {
  readonly #owners = new Map<string, string>();
  readonly #strangers: readonly [string, string];
  readonly #fail: (error: unknown) => void;
  /** Answers that were checked, and attempts of others to renew. */
  checked = 0;
  tried = 0;

  /** `strangers`: two users, of whom at least one is not the owner of a session. Neither has `steer`. */
  constructor(strangers: readonly [string, string], fail: (error: unknown) => void) {
    this.#strangers = strangers;
    this.#fail = fail;
  }

  began({ lease, incarnation }: Session, user: string): void {
    this.#owners.set(`${lease}.${incarnation}`, user);
  }

  /** A request that uses a session was answered. */
  used({ lease, incarnation }: Session, what: string, user: string | undefined): void {
    const owner = this.#owners.get(`${lease}.${incarnation}`);
    if (owner === undefined) return;
    this.checked++;
    if (owner === user) return;
    const text = `${what} with the session ${lease}.${incarnation} of ${owner} was answered to ${user}`;
    this.#fail(new Violation('sessions belong to users', text));
  }

  strangerOf(user: string): Principal {
    this.tried++;
    const [first, second] = this.#strangers;
    return { name: user === first ? second : first, method: 'certificate', door: 'pipe', address: undefined };
  }
}

/** A gateway's connection to the ranges, with the users of sessions checked. */
export function checkedOwners(backend: Backend, owners: Owners): Backend {
  return {
    nodeId: backend.nodeId,
    view: () => backend.view(),
    rangeTimeMs: () => backend.rangeTimeMs(),
    check: (principal, needs) => backend.check(principal, needs),
    watch: (options, listener) => backend.watch(options, listener),
    watchLocks: (options, listener, onEnd) => backend.watchLocks(options, listener, onEnd),
    command: (command, options, done) =>
      backend.command(command, options, ofCommand(backend, owners, command, options, done)),
    query: (query, options, done) => backend.query(query, options, ofQuery(owners, query, options, done)),
  };
}

function ofCommand(
  backend: Backend,
  owners: Owners,
  command: Command,
  { principal }: RequestOptions,
  done: BackendDone<CommandResult>,
): BackendDone<CommandResult> {
  const user = principal?.name;
  return (error, reply) => {
    if (reply?.result.type === 'leaseGrant' && command.type === 'leaseGrant' && command.owner !== undefined && user) {
      const { id: lease, incarnation } = reply.result;
      owners.began({ lease, incarnation }, user);
      renewAsStranger(backend, owners, { lease, incarnation }, user);
    }
    const session = reply === undefined ? undefined : sessionOf(command);
    if (session !== undefined) owners.used(session, command.type, user); // SO2
    done(error, reply);
  };
}

function ofQuery(
  owners: Owners,
  query: Query,
  { principal }: RequestOptions,
  done: BackendDone<QueryResult>,
): BackendDone<QueryResult> {
  if (query.type !== 'leaseKeepAlive') return done;
  return (error, reply) => {
    if (isRenewal(reply?.result)) {
      owners.used({ lease: query.id, incarnation: query.incarnation }, query.type, principal?.name);
    }
    done(error, reply);
  };
}

/** SO1. */
function renewAsStranger(backend: Backend, owners: Owners, session: Session, user: string): void {
  const principal = owners.strangerOf(user);
  const query: Query = { type: 'leaseKeepAlive', id: session.lease, incarnation: session.incarnation };
  backend.query(query, { principal, timeoutMs: TRY_MS }, (_error, reply) => {
    if (isRenewal(reply?.result)) owners.used(session, query.type, principal.name);
  });
}

function isRenewal(result: QueryResult | undefined): boolean {
  return result?.type === 'leaseKeepAlive' && result.ttlMs > 0;
}

function sessionOf(command: Command): Session | undefined {
  if (command.type !== 'lock') return undefined;
  const { command: lock } = command;
  return lock.type === 'acquire' || lock.type === 'release' ? lock.owner.session : undefined;
}
