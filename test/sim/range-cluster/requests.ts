/**
 * How clients of a run send requests: through any gateway, and, like the SDK, with retries under the same request id.
 */
import { type Random, ServiceError } from '@remora/base';
import type { BackendReply, RangeBackend, RequestTerms } from '@remora/gateway';
import type { Command, CommandResult, QueryResult } from '@remora/protocol';
import type { RangeCluster } from './bed.ts';
import type { SimNode } from './sim-node.ts';

export type Reply = BackendReply<CommandResult | QueryResult>;
export type ReplyDone = (error: ServiceError | undefined, reply: Reply | undefined) => void;

export class Requests {
  readonly #bed: RangeCluster;
  readonly #random: Random;
  /** Requests that did not end as they must. */
  readonly faults: string[] = [];
  #commands = 0;

  constructor(bed: RangeCluster) {
    this.#bed = bed;
    this.#random = bed.random;
  }

  #backend(): SimNode | undefined {
    const up = [...this.#bed.nodes.values()].filter((node) => node.running !== undefined);
    return up[this.#random.int(up.length)];
  }

  /** Half of the requests behave as in the SDK: one id and one deadline for all attempts, through any gateway. */
  command(command: Command, timeoutMs: number, done: ReplyDone): void {
    const number = ++this.#commands;
    const backend = this.#backend()?.running?.backend;
    const timeMs = backend?.rangeTimeMs();
    const fixed =
      timeMs === undefined || this.#random.int(2) === 0
        ? undefined
        : { requestId: `r${this.#random.int(1e9)}.${number}`, deadlineMs: timeMs + 6_000 };
    let unknown = false;
    const attempt = (left: number): void => {
      const options: RequestTerms = { timeoutMs, ...fixed };
      this.send(
        timeoutMs,
        (to, answered) => to.command(command, options, answered),
        (error, reply) => {
          unknown ||= error === undefined ? false : error.mayBeApplied;
          if (error !== undefined && fixed !== undefined && left > 0 && retryable(error)) return attempt(left - 1);
          done(error !== undefined && unknown ? UNKNOWN : error, reply);
        },
      );
    };
    attempt(3);
  }

  /** Sends through some gateway. If that gateway dies, the answer is UNKNOWN. Requests must end by their time-out. */
  send(timeoutMs: number, send: (backend: RangeBackend, done: ReplyDone) => void, done: ReplyDone): void {
    const node = this.#backend();
    const { clock } = this.#bed;
    if (node?.running === undefined) {
      clock.setTimer(10, () => done(UNREACHABLE, undefined));
      return;
    }
    const { life, pauses } = node;
    const wasPaused = node.clock.paused;
    const startMs = clock.monotonicMs();
    let answered = false;
    send(node.running.backend, (error, reply) => {
      if (answered) return;
      answered = true;
      const tookMs = clock.monotonicMs() - startMs;
      if (tookMs > timeoutMs + LATE_MS && node.pauses === pauses && !wasPaused) {
        this.faults.push(`a request with ${timeoutMs} ms took ${tookMs} ms`);
      }
      done(error, reply);
    });
    const watch = (): void => {
      if (answered) return;
      if (node.life !== life) {
        answered = true;
        done(UNKNOWN, undefined);
      } else if (clock.monotonicMs() - startMs > timeoutMs + ANSWER_MAX_MS)
        this.faults.push('a request was never answered');
      else clock.setTimer(50, watch);
    };
    clock.setTimer(50, watch);
  }
}

/** How much later than its time-out a request may end: sweeps detect time-outs. */
const LATE_MS = 150;

/** The same if its gateway was paused meanwhile. */
const ANSWER_MAX_MS = 10_000;

const UNKNOWN = new ServiceError('UNKNOWN_OUTCOME', 'the gateway is gone');
const UNREACHABLE = new ServiceError('UNAVAILABLE', 'no gateway runs');

function retryable(error: ServiceError): boolean {
  return error.retry !== 'no';
}
