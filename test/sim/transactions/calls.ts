/** Calls from gateways to the ranges of a world. Each attempt is answered once, late, or not at all. */
import { ServiceError } from '@remora/base';
import {
  type Command,
  type CommandResult,
  masterDrawRevisions,
  type Query,
  type QueryResult,
  type RangeRequest,
  type TxnDecide,
  type TxnResolve,
} from '@remora/protocol';
import type { TransactionPeers } from '../../../packages/dataserver/src/transactions/intent-resolver.ts';
import { RANGES, type World } from '../revisions/world.ts';

const EPOCH = { confVersion: 1, version: 2 };
const ATTEMPT_MS = 150;
const DRAW_MS = 250;
/** Long enough for every retry of a run. */
export const DEADLINE_MS = 100_000;

export interface Answered {
  readonly result: CommandResult | QueryResult;
  readonly revision: number;
}

/** Undefined: no answer came. */
export type Answer = Answered | ServiceError | undefined;

export class Calls {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /** The range of a plain key. */
  rangeOf(key: string): number {
    const range = RANGES.findLast(({ first }) => first <= key) ?? RANGES[0];
    return range?.descriptor.rangeId ?? 0;
  }

  /** The range of the routing key of a plain key. */
  rangeOfRouted(key: Uint8Array): number {
    return this.rangeOf(Buffer.from(key.subarray(1)).toString());
  }

  /** The time of a range, as one of its replicas estimates it. */
  timeMs(rangeId: number): number {
    return this.#someReplica(rangeId)?.info().rangeTimeMs ?? 0;
  }

  /** Repeats until a leader answers, or until `whileAlive` returns false. */
  async command(
    rangeId: number,
    command: Command,
    { requestId = '', deadlineMs }: { readonly requestId?: string; readonly deadlineMs?: number },
    whileAlive: () => boolean,
  ): Promise<Answered | ServiceError> {
    for (;;) {
      const until = deadlineMs ?? this.timeMs(rangeId) + DEADLINE_MS;
      const request = {
        rangeId,
        epoch: EPOCH,
        requestId,
        authRevision: 0,
        deadlineMs: until,
        body: { kind: 'command', command },
      } as const;
      const answer = await this.#attempt(request);
      if (!whileAlive()) return new Promise(() => {});
      if (answer !== undefined && (!(answer instanceof Error) || answer.retry === 'no')) return answer;
      await this.pause(20);
    }
  }

  async query(rangeId: number, query: Query): Promise<Answer> {
    return this.#attempt({
      rangeId,
      epoch: EPOCH,
      requestId: '',
      authRevision: 0,
      deadlineMs: 0,
      body: { kind: 'query', query, notBefore: 0 },
    });
  }

  /** A revision above `floor` that no other caller gets. Undefined if there was no answer. */
  draw(floor: number): Promise<number | undefined> {
    return new Promise((resolve) => {
      const request = { floor, draws: [{ rangeId: 99, count: 1 }] };
      this.#world
        .anyNode()
        .finder.call(masterDrawRevisions, request, { timeoutMs: DRAW_MS }, (_error, reply) =>
          resolve(reply?.blocks[0]?.first),
        );
    });
  }

  pause(ms: number): Promise<void> {
    const { clock, random } = this.#world;
    return new Promise((resolve) => clock.setTimer(1 + random.int(ms), resolve));
  }

  /** For leaders' requests to other ranges. */
  get peers(): TransactionPeers {
    const once = (command: TxnDecide | TxnResolve, key: Uint8Array): Promise<Answer> => {
      const rangeId = this.rangeOfRouted(key);
      const deadlineMs = this.timeMs(rangeId) + DEADLINE_MS;
      return this.#attempt({
        rangeId,
        epoch: EPOCH,
        requestId: '',
        authRevision: 0,
        deadlineMs,
        body: { kind: 'command', command },
      });
    };
    return {
      push: ({ txnId, primaryKey }, done) => {
        const decision = { type: 'push' } as const;
        void once({ type: 'txnDecide', txnId, primaryKey, requestId: '', decision }, primaryKey).then((answer) => {
          const told = answer !== undefined && !(answer instanceof Error) && answer.result.type === 'txnDecide';
          done(told && answer.result.type === 'txnDecide' ? answer.result.outcome : undefined);
        });
      },
      resolve: (command, done) => {
        void once(command, command.span.start).then((answer) => {
          if (answer !== undefined && !(answer instanceof Error)) done(undefined);
          else done(answer ?? LOST);
        });
      },
    };
  }

  #attempt(request: RangeRequest): Promise<Answer> {
    const { clock } = this.#world;
    return new Promise((resolve) => {
      clock.setTimer(ATTEMPT_MS, () => resolve(undefined));
      const replica = this.#someReplica(request.rangeId);
      this.#world.deliver(() =>
        replica?.requests.execute(
          request,
          () => {},
          (error, reply) => this.#world.deliver(() => resolve(reply ?? error)),
        ),
      );
    });
  }

  /** A replica that leads, or believes so, or led a while ago. */
  #someReplica(rangeId: number) {
    const { random, ranges } = this.#world;
    const leader = ranges.get(rangeId)?.leader?.replicaId ?? 1;
    const nodeId = random.int(8) === 0 ? 1 + random.int(3) : leader;
    return this.#world.node(nodeId).replicas.get(rangeId);
  }
}

const LOST = new ServiceError('UNKNOWN_OUTCOME', 'no answer came');
