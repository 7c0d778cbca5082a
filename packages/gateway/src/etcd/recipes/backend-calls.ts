import { assert, type ServiceError } from '@remora/base';
import type { Command, CommandResult, Query, QueryResult } from '@remora/protocol';
import type * as pb from '@remora/protocol/etcd';
import type { Asked, Backend, BackendDone, RequestOptions } from '../../backend.ts';
import { checkSize, opBytes, type RequestLimits, txnBytes } from '../../request-limits.ts';
import type { Headers } from '../headers.ts';
import { expectType } from '../kv-responses.ts';

type AnyResult = CommandResult | QueryResult;

/** The result of a step of a recipe, and the header with which the whole call may answer. */
export interface Step<Type extends AnyResult['type']> {
  readonly result: Extract<AnyResult, { readonly type: Type }>;
  readonly header: pb.ResponseHeader;
}

/** How long one step may take. A recipe may take longer, and retries its steps. */
const STEP_TIMEOUT_MS = 10_000;

/** The backend as promises, for calls of several steps. */
export class BackendCalls {
  readonly backend: Backend;
  readonly principal: Asked['principal'];
  readonly #headers: Headers;
  readonly #limits: RequestLimits;

  /** `principal`: for whom it acts. */
  constructor(backend: Backend, headers: Headers, limits: RequestLimits, principal: Asked['principal']) {
    this.backend = backend;
    this.#headers = headers;
    this.#limits = limits;
    this.principal = principal;
  }

  /** The same for another caller. */
  as(principal: Asked['principal']): BackendCalls {
    return new BackendCalls(this.backend, this.#headers, this.#limits, principal);
  }

  /** The header after an event of a watch; watches do not know the term. */
  header(revision: number): pb.ResponseHeader {
    return this.#headers.make(revision, 0);
  }

  /**
   * Resolves even after the caller has given up: a recipe must know the outcome of its commands.
   *
   * @throws ServiceError REQUEST_TOO_LARGE before anything is sent, as the caller chose names and values.
   */
  async command<Type extends CommandResult['type']>(
    command: Command,
    type: Type,
    options: Pick<RequestOptions, 'givesUp'> = {},
  ): Promise<Step<Type>> {
    if (command.type === 'kv') checkSize(opBytes(command.op), this.#limits);
    if (command.type === 'txn') checkSize(txnBytes(command.txn), this.#limits);
    const all = { timeoutMs: STEP_TIMEOUT_MS, principal: this.principal, ...options };
    return this.#step(type, (done) => void this.backend.command(command, all, done));
  }

  /** @throws ServiceError REQUEST_TOO_LARGE */
  async query<Type extends QueryResult['type']>(query: Query, type: Type): Promise<Step<Type>> {
    if (query.type === 'range') checkSize(opBytes(query.op), this.#limits);
    const options = { timeoutMs: STEP_TIMEOUT_MS, principal: this.principal };
    return this.#step(type, (done) => void this.backend.query(query, options, done));
  }

  #step<Type extends AnyResult['type']>(
    type: Type,
    start: (done: BackendDone<AnyResult>) => void,
  ): Promise<Step<Type>> {
    return new Promise((resolve, reject: (error: ServiceError) => void) => {
      start((error, reply) => {
        if (error !== undefined) return reject(error);
        assert(reply !== undefined, 'a backend returns a reply or an error');
        const header = this.#headers.make(reply.revision, reply.raftTerm);
        resolve({ result: expectType(reply.result, type) as Step<Type>['result'], header });
      });
    });
  }
}
