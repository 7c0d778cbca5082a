/**
 * The product's gateway (routing and coordinator) over the product's state machines. Each is a range whose log is one
 * command after another. There is no consensus, no network and no fault: a transaction takes only as long as its code.
 */
import { SeededRandom, type ServiceError, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { RangeBackend } from '@remora/gateway';
import {
  type Command,
  type CommandResult,
  type KeyValue,
  type KvEvent,
  kvRoutingKey,
  type PutOp,
  type RangeDescriptor,
  type RangeReply,
  type RangeRequest,
  type RpcChannel,
  type RpcDialer,
  type Txn,
} from '@remora/protocol';
import { getCurrent } from '../../../../packages/dataserver/src/state/kv/kv-read.ts';
import { toKeyValue } from '../../../../packages/dataserver/src/state/kv/record.ts';
import { errorOf } from '../../../../packages/dataserver/src/state/outcomes/outcome-codec.ts';
import { memoryEngine, StateBed } from '../../../../packages/dataserver/test/support/state-bed.ts';

type Done = (error: ServiceError | undefined, reply: RangeReply | undefined) => void;
type Info = { readonly rangeId: number };

/** What a client receives. */
export interface Answer {
  readonly error: ServiceError | undefined;
  readonly result: CommandResult | undefined;
  readonly revision: number;
}

const NODE = 1;
const NO_KEY = new Uint8Array(0);
const TIMEOUT_MS = 5_000;
/** More revisions than one command takes. */
const BLOCK = 10;
/** How many turns of the event loop, without a timer, one answer may take. */
const TURNS_MAX = 10_000;
const IDLE_TURNS = 200;
const TURNS_BEFORE_LOOP = 50;
/** Longer than anything is remembered. */
const PASSING_MS = 100_000;

export class SmallCluster {
  readonly #clock = new ManualClock();
  readonly #ranges: readonly StateBed[];
  readonly #backend: RangeBackend;
  /** The master's counter. */
  #revision = 1;
  /** The time of the ranges. */
  #timeMs = 1_000;
  /** Commands that ranges have not answered yet. */
  #inFlight = 0;

  /** `borders` are the start keys of all ranges but the first. */
  constructor(borders: readonly string[]) {
    const engine = memoryEngine();
    const starts = [NO_KEY, ...borders.map((key) => kvRoutingKey(Buffer.from(key)))];
    const descriptors = starts.map(
      (start, i): RangeDescriptor => ({
        ...{ rangeId: 2 + i, start, end: starts[i + 1] ?? NO_KEY },
        epoch: { confVersion: 1, version: 1 },
        replicas: [{ replicaId: 10 + i, nodeId: NODE, type: 'voter' }],
        revisionSource: borders.length === 0 ? 'range' : 'master',
      }),
    );
    this.#ranges = descriptors.map((descriptor) => new StateBed({ engine, descriptor }));
    const leaders = descriptors.map(({ rangeId }) => [rangeId, NODE] as const);
    const view = { clusterId: 'c', nodes: [], ranges: descriptors, leaders, masterLeader: NODE };
    this.#backend = new RangeBackend({
      nodeId: NODE,
      dialer: this.#dialer(),
      view: () => view,
      master: {
        draw: (floor, done) => done(undefined, this.#draw(floor)),
        newest: (_floor, done) => done(undefined, this.#revision),
        view: (done) => done(undefined, view),
      },
      clock: this.#clock,
      random: new SeededRandom(1),
      logger: silentLogger,
    });
  }

  #draw(floor: number): number {
    this.#revision = Math.max(this.#revision, floor) + 1;
    return this.#revision;
  }

  #dialer(): RpcDialer {
    const call = (method: { readonly name: string }, request: RangeRequest | Info, _options: unknown, done: Done) => {
      if ('body' in request) void this.#execute(request, done);
      else {
        const info = { rangeId: request.rangeId, leaderNode: NODE, rangeTimeMs: this.#timeMs, revision: 1, term: 1 };
        if (method.name === 'range.info' || method.name === 'range.awaitLeader') done(undefined, info as never);
        else throw new Error(`nobody answers ${method.name} here`);
      }
      return { cancel() {} };
    };
    const channel = () => ({ call }) as unknown as RpcChannel;
    return { channel, channelTo: channel };
  }

  async #execute({ rangeId, requestId, deadlineMs, body }: RangeRequest, done: Done): Promise<void> {
    if (body.kind === 'query') throw new Error(`no ${body.query.type} is asked here`);
    this.#inFlight++;
    const bed = this.#ranges.find(({ state }) => state.rangeId === rangeId);
    if (bed === undefined) throw new Error(`there is no range ${rangeId}`);
    bed.timeMs = this.#timeMs;
    const isNumbered = bed.state.descriptor.revisionSource === 'master';
    bed.block = isNumbered ? { first: this.#draw(bed.state.revision), count: BLOCK } : undefined;
    const outcome = await bed.run(body.command, { requestId, deadlineMs });
    this.#revision = Math.max(this.#revision, bed.state.revision);
    this.#inFlight--;
    if (!outcome.ok) return done(errorOf(outcome), undefined);
    const { revision, result } = outcome;
    done(undefined, { revision, raftTerm: 1, rangeTimeMs: this.#timeMs, result });
  }

  /** The client's answer. The cluster has nothing more to do by then. */
  async ask(command: Command): Promise<Answer> {
    let answer: Answer | undefined;
    this.#backend.command(command, { timeoutMs: TIMEOUT_MS }, (error, reply) => {
      answer = { error, result: reply?.result, revision: reply?.revision ?? 0 };
    });
    for (let turn = 0; answer === undefined || this.#backend.inFlight().coordinated > 0; turn++) {
      if (turn > TURNS_MAX) throw new Error('the gateway never ends what it was asked');
      await Promise.resolve();
      this.#clock.runImmediates();
      if (turn % TURNS_BEFORE_LOOP === TURNS_BEFORE_LOOP - 1)
        await new Promise<void>((resolve) => setImmediate(resolve));
      // If nothing is in flight, a waiting request has set a timer.
      if (this.#inFlight === 0 && turn % IDLE_TURNS === IDLE_TURNS - 1) this.#clock.fireNext();
    }
    return answer;
  }

  txn(txn: Txn): Promise<Answer> {
    return this.ask({ type: 'txn', txn });
  }

  kv(op: PutOp): Promise<Answer> {
    return this.ask({ type: 'kv', op });
  }

  /** Everything that was applied so far is forgotten: repeated requests are not recognized. */
  timePasses(): void {
    this.#timeMs += PASSING_MS;
    this.#clock.advance(PASSING_MS);
  }

  /** The pairs of the existing ones among these keys, from the engine of the ranges. */
  pairs(keys: readonly string[]): readonly KeyValue[] {
    const [first] = this.#ranges;
    if (first === undefined) return [];
    return keys.flatMap((key) => {
      const version = getCurrent(first.engine, Buffer.from(key));
      return version === undefined ? [] : [toKeyValue(Buffer.from(key), version)];
    });
  }

  /** The watch events since the last call. */
  takeEvents(): readonly KvEvent[] {
    return this.#ranges.flatMap((bed) => bed.events.splice(0).flatMap(({ events }) => events));
  }

  /** Parts and records of transactions that ranges still have. */
  get left(): number {
    return this.#ranges.reduce((sum, { state }) => sum + state.transactions.size, 0);
  }
}
