/**
 * What the audit log shows of requests.
 *
 * AC1. It is recorded where requests are decided about, so no door can forget it: every refusal, and everything that
 *      needs the role root or the verb `steer`, when its outcome is known.
 * AC2. Other commands that succeed are recorded if the operator asks for writes. Reads that are allowed never are.
 * AC3. While nothing is recorded (no audit log, authentication off), a request costs one look at a field.
 * AC4. To end or change a session of another user is to steer, too. Whose it is, is known once the request is decided
 *      about (decisions.ts DE3). While authentication is off, sessions are nobody's in particular.
 * AC5. Request ids of the Pipe are not shown: who knows one can ask for the outcome, which may have values.
 */
import {
  type Audit,
  type Need,
  needsOfCommand,
  needText,
  type OwnerNeed,
  type PlainNeed,
  type Principal,
} from '@remora/auth';
import type { ServiceError } from '@remora/base';
import { type Command, type CommandResult, NO_OWNER, type Query, type QueryResult } from '@remora/protocol';
import type { BackendDone, RequestOptions } from '../backend.ts';
import type { RequestClearance } from './request-clearance.ts';

const REFUSALS = new Set(['UNAUTHENTICATED', 'PERMISSION_DENIED']);

export class AuditedCalls {
  readonly #audit: Audit;

  constructor(audit: Audit) {
    this.#audit = audit;
  }

  command(
    command: Command,
    options: RequestOptions,
    clearance: Pick<RequestClearance, 'ofLeases'>,
    done: BackendDone<CommandResult>,
  ): BackendDone<CommandResult> {
    if (!this.#audit.isOn) return done; // AC3
    const needs = needsOfCommand(command);
    const isAlways = needs.some(isAdministration);
    return (error, reply) => {
      const isWrite = error === undefined && this.#audit.writes;
      const steered = clearance.ofLeases.filter((need) => isSteeringOfSession(need, options.principal));
      if (isAlways || isWrite || steered.length > 0 || isRefusal(error)) {
        this.#ended(actionOfCommand(command), options, steered.length > 0 ? steered : needs, error);
      }
      done(error, reply);
    };
  }

  query(
    query: Query,
    needs: () => readonly Need[],
    options: RequestOptions,
    done: BackendDone<QueryResult>,
  ): BackendDone<QueryResult> {
    if (!this.#audit.isOn) return done; // AC3
    return (error, reply) => {
      if (isRefusal(error)) this.#ended(actionOfQuery(query), options, needs(), error);
      done(error, reply);
    };
  }

  /** For what is decided at once: `refusal` is undefined if it is let in. */
  decided(
    action: string | undefined,
    principal: Principal | undefined,
    needs: readonly PlainNeed[],
    refusal: ServiceError | undefined,
  ): void {
    if (!this.#audit.isOn) return; // AC3
    if (!isRefusal(refusal) && !needs.some(isAdministration)) return;
    const what = needs.find((need) => need.type === 'root')?.what;
    this.#ended(action ?? what ?? 'look', { principal }, needs, refusal);
  }

  #ended(
    action: string,
    { principal, requestId }: Pick<RequestOptions, 'principal' | 'requestId'>,
    needs: readonly Need[],
    error: ServiceError | undefined,
  ): void {
    this.#audit.record({
      ...{ action, decision: isRefusal(error) ? 'denied' : error === undefined ? 'allowed' : 'failed', principal },
      targets: needs.flatMap(targetOf),
      reason: isRefusal(error) ? error?.message : error?.code,
      requestId: principal?.door === 'pipe' ? undefined : requestId, // AC5
    });
  }
}

function isRefusal(error: ServiceError | undefined): boolean {
  return error !== undefined && REFUSALS.has(error.code);
}

/** AC1. */
function isAdministration(need: Need): boolean {
  if (need.type === 'root') return need.looks !== true;
  return (need.type === 'lock' || need.type === 'locks') && need.verb === 'steer';
}

/** AC4. */
function isSteeringOfSession(need: PlainNeed, principal: Principal | undefined): boolean {
  if (need.type !== 'owner' || need.owner === undefined || need.owner === principal?.name) return false;
  return need.what === 'end' || need.what === 'change';
}

function actionOfCommand(command: Command): string {
  if (command.type === 'kv') return command.op.type;
  return command.type === 'lock' ? `lock.${command.command.type}` : command.type;
}

function actionOfQuery(query: Query): string {
  return query.type === 'lock' ? `lock.${query.query.type}` : query.type;
}

function targetOf(need: Need): readonly string[] {
  switch (need.type) {
    case 'keys':
    case 'lock':
    case 'locks':
      return [needText(need)];
    case 'leaseKeys':
      return [`read the keys of the lease ${hex(need.lease)}`];
    case 'lease':
      return [`${need.use} the lease ${hex(need.lease)}`];
    case 'session':
      return [`${need.use} the session ${hex(need.lease)}`];
    case 'owner':
      return [`${need.what} the session ${hex(need.lease)} of ${ownerText(need)}`];
    case 'sessions':
      return [`list the sessions of ${need.owner === undefined ? 'all users' : `the user "${need.owner}"`}`];
    case 'root':
    case 'anyUser':
      return [];
  }
}

function ownerText({ owner }: OwnerNeed): string {
  if (owner === undefined) return 'nobody';
  return owner === NO_OWNER ? 'no user' : `the user ${JSON.stringify(owner)}`;
}

/** As clients show ids of leases. */
function hex(lease: bigint): string {
  return BigInt.asUintN(64, lease).toString(16);
}
