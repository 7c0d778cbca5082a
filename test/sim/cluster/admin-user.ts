/**
 * Who operates the cluster: asks by the calls of `remora.v1.Admin`, as they are behind the command line, whichever
 * gateway is up.
 *
 * AU1. What is asked once may be lost with the gateway that was asked; what is insisted on is asked until it is
 *      answered.
 * AU2. A refusal is an answer. One that says that the program is at fault is a failure of the run.
 * AU3. Of one node another duty is asked for when what was asked before is answered: of two that are insisted on at a
 *      time either may come last.
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
  /** Of a maintenance window. */
  readonly forMs?: number;
}

const TIMEOUT_MS = 4_000;
const AGAIN_MS = 400;

export class AdminUser {
  /** How many requests were carried out, or at least begun, and refused. */
  accepted = 0;
  refused = 0;
  readonly #deps: AdminUserDeps;
  #insisting = 0;
  /** AU3. By node; the first of each is being asked. */
  readonly #duties = new Map<number, (() => void)[]>();

  constructor(deps: AdminUserDeps) {
    this.#deps = deps;
  }

  /** Whether everything that was insisted on is done. */
  get idle(): boolean {
    return this.#insisting === 0;
  }

  /** Asks once (AU1). False when there is nobody to ask. */
  ask<Reply>(what: string, ask: AdminCall<Reply>, done: (error: ServiceError | undefined) => void = () => {}): boolean {
    const gateways = this.#deps.nodes().filter(({ admin, stopping }) => admin !== undefined && !stopping);
    const gateway = gateways[this.#deps.random.int(Math.max(1, gateways.length))];
    if (gateway === undefined) return false;
    gateway.enter(() => {
      const { admin } = gateway;
      if (admin === undefined) return;
      ask(admin, { timeoutMs: TIMEOUT_MS, callerMs: TIMEOUT_MS, seen: { newest: 0 } }).then(
        () => {
          this.accepted++;
          done(undefined);
        },
        (error: unknown) => this.#refused(what, error, done),
      );
    });
    return true;
  }

  /** Asks until it is answered, or refused for good; `done` is told which. */
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
      // It may have been lost with whoever was asked (AU1).
      this.#deps.loop.setTimer(asked ? TIMEOUT_MS + AGAIN_MS : AGAIN_MS, () => {
        if (!answered) again();
      });
    };
    again();
  }

  /** AU3. Insists; `done` is told what became of it. */
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
