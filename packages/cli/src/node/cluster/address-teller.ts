/**
 * Calls every node, which so learns from the caller's hello where the caller is (peer-addresses.ts PA5).
 *
 * AT1. A node that is not reached is called again every second, for a minute: its connection may be in the pause after
 *      a failed attempt, or may still be dialled at a former address.
 */
import type { Clock, ErrorCode, Timer } from '@remora/base';
import { type ClusterView, masterView, type RpcDialer } from '@remora/protocol';

export interface AddressTellerDeps {
  readonly nodeId: number;
  readonly clock: Pick<Clock, 'setTimer'>;
  readonly dialer: RpcDialer;
}

const CALL_TIMEOUT_MS = 1_000;
const PAUSE_MS = 1_000;
const TRIES_MAX = 60;
/** Every other code is an answer of the node. */
const NOT_REACHED: ReadonlySet<ErrorCode> = new Set(['UNAVAILABLE', 'UNKNOWN_OUTCOME', 'DEADLINE_EXCEEDED']);

export class AddressTeller {
  readonly #deps: AddressTellerDeps;
  readonly #timers = new Set<Timer>();
  #stopped = false;

  constructor(deps: AddressTellerDeps) {
    this.#deps = deps;
  }

  tell({ nodes }: ClusterView): void {
    for (const { descriptor, state } of nodes) {
      if (state !== 'removed' && descriptor.nodeId !== this.#deps.nodeId) this.#call(descriptor.nodeId, TRIES_MAX);
    }
  }

  stop(): void {
    this.#stopped = true;
    for (const timer of this.#timers) timer.cancel();
  }

  /** Any call is sufficient. */
  #call(nodeId: number, triesLeft: number): void {
    const { dialer, clock } = this.#deps;
    dialer.channel(nodeId).call(masterView, undefined, { timeoutMs: CALL_TIMEOUT_MS }, (error) => {
      if (error === undefined || !NOT_REACHED.has(error.code) || triesLeft <= 1 || this.#stopped) return;
      const timer = clock.setTimer(PAUSE_MS, () => {
        this.#timers.delete(timer);
        this.#call(nodeId, triesLeft - 1);
      });
      this.#timers.add(timer);
    });
  }
}
