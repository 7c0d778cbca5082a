/** One run: clients write, gateways close revisions and read at them, and faults happen. Then all faults end. */
import type { ServiceError } from '@remora/base';
import type { Command, Query, RangeReply, RangeRequest } from '@remora/protocol';
import { put, range } from '../../../packages/dataserver/test/support/state-bed.ts';
import { Truth } from './truth.ts';
import { NODES, RANGES, World } from './world.ts';

const CLIENTS = 6;
const GATEWAYS = 8;
const KEYS = 3;
const ROUGH_MS = 5_000;
const CALM_MS = 2_000;
const ATTEMPT_MS = 150;
/** Long enough for every retry of a run. */
const DEADLINE_MS = 100_000;
const EPOCH = { confVersion: 1, version: 2 };

export interface RunResult {
  readonly faults: readonly string[];
  readonly changes: number;
  readonly closings: number;
  readonly reads: number;
  readonly lostCalls: number;
  readonly restarts: number;
}

type Answer = (error: ServiceError | undefined, reply: RangeReply | undefined) => void;

export async function runSeed(seed: number): Promise<RunResult> {
  const run = new Run(seed);
  return run.result();
}

class Run {
  readonly #truth = new Truth();
  readonly #world: World;
  #ids = 0;
  /** Writes that have begun and are not answered. */
  #open = 0;
  #ending = false;
  #answered = 0;

  constructor(seed: number) {
    this.#world = new World(seed, (command) => this.#truth.applied(command));
    for (let i = 0; i < CLIENTS; i++) this.#client();
    for (let i = 0; i < GATEWAYS; i++) this.#gateway(0);
    this.#sample();
  }

  async result(): Promise<RunResult> {
    const world = this.#world;
    const truth = this.#truth;
    await world.run(ROUGH_MS);
    world.calmDown();
    await world.run(CALM_MS);
    const before = this.#answered;
    await world.run(CALM_MS / 2);
    const faults = [...truth.faults];
    if (this.#answered === before) faults.push('writes do not go on when all is calm');
    this.#ending = true;
    await world.run(CALM_MS);
    if (this.#open > 0) faults.push(`${this.#open} writes are never answered`);
    const { changes, closings, reads } = truth;
    const { lostCalls, restarts } = world;
    return { faults, changes, closings, reads, lostCalls, restarts };
  }

  /** A replica that leads, or believes so, or led a while ago. */
  #someReplica(rangeId: number) {
    const { random, ranges } = this.#world;
    const leader = ranges.get(rangeId)?.leader?.replicaId ?? 1;
    const nodeId = random.int(2) === 0 ? 1 + random.int(NODES.length) : leader;
    return this.#world.node(nodeId).replicas.get(rangeId);
  }

  /** One attempt, answered once. */
  #send(request: RangeRequest, answer: Answer): void {
    let over = false;
    const finish: Answer = (error, reply) => {
      if (over) return;
      over = true;
      answer(error, reply);
    };
    this.#world.clock.setTimer(ATTEMPT_MS, () => finish(undefined, undefined));
    const replica = this.#someReplica(request.rangeId);
    this.#world.deliver(() =>
      replica?.requests.execute(
        request,
        () => {},
        (error, reply) => this.#world.deliver(() => finish(error, reply)),
      ),
    );
  }

  // -------------------------------------------------------------------------------------------- clients

  #client(): void {
    const { clock, random } = this.#world;
    clock.setTimer(random.int(80), () => {
      if (this.#ending) return;
      const { descriptor, first } = RANGES[random.int(RANGES.length)] ?? RANGES[0] ?? fail();
      const key = `${first}${random.int(KEYS)}`;
      const requestId = `r${++this.#ids}`;
      const rangeTimeMs = this.#someReplica(descriptor.rangeId)?.info().rangeTimeMs ?? 0;
      const op = put(key, requestId);
      if (op.type !== 'put') return fail();
      this.#truth.began(requestId, key);
      this.#open++;
      this.#write({
        ...{
          rangeId: descriptor.rangeId,
          epoch: EPOCH,
          requestId,
          authRevision: 0,
          deadlineMs: rangeTimeMs + DEADLINE_MS,
        },
        body: { kind: 'command', command: { type: 'kv', op } satisfies Command },
      });
    });
  }

  #write(request: RangeRequest): void {
    this.#send(request, (error, reply) => {
      if (reply !== undefined) this.#truth.answered(reply.revision);
      else if (error?.retry !== 'no') {
        this.#world.clock.setTimer(this.#world.random.int(20), () => this.#write(request));
        return;
      }
      this.#open--;
      this.#answered++;
      this.#client();
    });
  }

  // -------------------------------------------------------------------------------------------- gateways

  /** Draws a revision, has the ranges close it, and reads at it. */
  #gateway(floor: number): void {
    const { clock, random } = this.#world;
    clock.setTimer(random.int(15), () => {
      if (this.#ending) return;
      const { acknowledged } = this.#truth;
      this.#world.newest(floor, (_error, reply) => {
        if (reply === undefined) this.#gateway(floor);
        else {
          this.#truth.drawnAbove(floor, reply.newest);
          this.#close(reply.newest, acknowledged);
        }
      });
    });
  }

  #close(revision: number, acknowledged: number): void {
    const { descriptor } = RANGES[this.#world.random.int(RANGES.length)] ?? fail();
    const { rangeId } = descriptor;
    this.#query(rangeId, { type: 'closedRevision', revision }, (_error, reply) => {
      if (reply?.result.type !== 'closedRevision') return this.#gateway(0);
      const { closed, floor } = reply.result;
      this.#truth.closed(rangeId, closed);
      if (floor > revision) return this.#gateway(floor);
      this.#truth.drawn(revision, acknowledged);
      this.#read(rangeId, revision);
    });
  }

  #read(rangeId: number, revision: number): void {
    const op = range('a', 'z', { revision });
    const within = RANGES.find(({ descriptor }) => descriptor.rangeId === rangeId)?.first ?? 'a';
    const span = { ...op, key: Buffer.from(`${within}0`), end: Buffer.from(`${within}${KEYS}`) };
    this.#query(rangeId, { type: 'range', op: span, serializable: false }, (_error, reply) => {
      // A new leader may not know that the revision is closed.
      if (reply?.result.type === 'range') {
        const pairs = reply.result.kvs.map((kv) => `${Buffer.from(kv.key)}=${Buffer.from(kv.value)}@${kv.modRevision}`);
        this.#truth.read(rangeId, revision, pairs);
      }
      this.#gateway(0);
    });
  }

  #query(rangeId: number, query: Query, answer: Answer): void {
    this.#send(
      {
        rangeId,
        epoch: EPOCH,
        requestId: '',
        authRevision: 0,
        deadlineMs: 0,
        body: { kind: 'query', query, notBefore: 0 },
      },
      answer,
    );
  }

  /** Checks what any replica reports as closed, at any time. */
  #sample(): void {
    const { clock, random } = this.#world;
    clock.setTimer(1 + random.int(20), () => {
      for (const replica of this.#world.anyNode().replicas.values()) {
        this.#truth.closed(replica.rangeId, replica.closing.closed);
      }
      this.#sample();
    });
  }
}

function fail(): never {
  throw new Error('there are ranges');
}
