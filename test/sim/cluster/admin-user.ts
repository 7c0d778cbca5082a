/**
 * The operator of the cluster: uses the calls of `remora.v1.Admin`, like the command line, through any gateway that is
 * up.
 *
 * AU1. A request that is sent once may be lost with its gateway; a request that is insisted on is repeated until it is
 *      answered.
 * AU2. A refusal is an answer. A refusal that reports a fault of the program fails the run.
 * AU3. Another duty of one node is requested only after the previous request is answered: if two were insisted on at a
 *      time, either could come last.
 */
import { type Random, ServiceError } from '@remora/base';
import type { NodeDuty } from '@remora/protocol';
import type { AdminApi } from '../../../packages/gateway/src/admin/admin-api.ts';
import type { CallInfo } from '../../../packages/gateway/src/calls.ts';
import type { SimLoop } from '../common/env/loop.ts';
import { Violation } from '../common/violation.ts';
import type { SimNode } from './node.ts';

export type AdminCall<Reply> = (api: AdminApi, call: CallInfo) => Promise<Reply>;

export interface AdminUserDeps {
  readonly loop: SimLoop;
  readonly random: Random;
  readonly nodes: () => readonly SimNode[];
  readonly fail: (error: unknown) => void;
}

export interface DutyAsked {
  readonly nodeId: number;
  readonly duty: NodeDuty;
  /** The length of a maintenance window. */
  readonly forMs?: number;
}

const TIMEOUT_MS = 4_000;
const AGAIN_MS = 400;

export class AdminUser {
  /** The number of requests that were carried out, or at least begun, and of those refused. */
  accepted = 0;
  refused = 0;
  readonly #deps: AdminUserDeps;
  #insisting = 0;
  /** AU3. By node; the first request of each is in progress. */
  readonly #duties = new Map<number, (() => void)[]>();

  constructor(deps: AdminUserDeps) {
    this.#deps = deps;
  }

  /** Whether everything that was insisted on is done. */
  get idle(): boolean {
    return this.#insisting === 0;
  }

  /** Sends a request once (AU1). Returns false if there is no gateway to ask. */
  ask<Reply>(what: string, ask: AdminCall<Reply>, done: (error: ServiceError | undefined) => void = () => {}): boolean {
    const gateways = this.#deps.nodes().filter(({ admin, stopping }) => admin !== undefined && !stopping);
    const gateway = gateways[this.#deps.random.int(Math.max(1, gateways.length))];
    if (gateway === undefined) return false;
    gateway.enter(() => {
      const { admin } = gateway;
      if (admin === undefined) return;
      ask(admin, { timeoutMs: TIMEOUT_MS, callerMs: TIMEOUT_MS, seen: { newest: 0 }, principal: undefined }).then(
        () => {
          this.accepted++;
          done(undefined);
        },
        (error: unknown) => this.#refused(what, error, done),
      );
    });
    return true;
  }

  /** Repeats a request until it is answered, or refused for good; `done` gets the result. */
  retryUntilAnswered<Reply>(
    what: string,
    ask: AdminCall<Reply>,
    done: (error: ServiceError | undefined) => void = () => {},
  ): void {
    this.#insisting++;
    let over = false;
    const end = (error: ServiceError | undefined): void => {
      if (over) return;
      over = true;
      this.#insisting--;
      done(error);
    };
    const again = (): void => {
      if (over) return;
      let answered = false;
      const asked = this.ask(what, ask, (error) => {
        answered = true;
        if (error === undefined || isForGood(error)) end(error);
        else this.#deps.loop.setTimer(AGAIN_MS, again);
      });
      // The request may have been lost with its gateway (AU1).
      this.#deps.loop.setTimer(asked ? TIMEOUT_MS + AGAIN_MS : AGAIN_MS, () => {
        if (!answered) again();
      });
    };
    again();
  }

  /** AU3. Insists; `done` gets the result. */
  setDuty({ nodeId, duty, forMs = 0 }: DutyAsked, done: (error: ServiceError | undefined) => void = () => {}): void {
    const request = { nodeId: BigInt(nodeId), duty, forMs: BigInt(forMs) };
    const asked = this.#duties.get(nodeId) ?? [];
    this.#duties.set(nodeId, asked);
    asked.push(() => {
      this.retryUntilAnswered(
        duty,
        (api, call) => api.steering.setNodeDuty(request, call),
        (error) => {
          asked.shift();
          asked[0]?.();
          done(error);
        },
      );
    });
    if (asked.length === 1) asked[0]?.();
  }

  /** AU2. */
  #refused(what: string, error: unknown, done: (error: ServiceError) => void): void {
    if (!(error instanceof ServiceError)) return this.#deps.fail(error);
    if (error.code === 'INTERNAL') {
      return this.#deps.fail(new Violation('errors are explained', `${what}: ${error.stack}`));
    }
    this.refused++;
    done(error);
  }
}

function isForGood({ code, retry }: ServiceError): boolean {
  return retry === 'no' && code !== 'DEADLINE_EXCEEDED';
}
