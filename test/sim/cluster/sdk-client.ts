/**
 * A machine with one client process: the SDK on a virtual clock and network. When it vanishes no other process is
 * notified, and the next process knows nothing of it.
 */
import { assert, SeededRandom } from '@remora/base';
import { type ClientOptions, RemoraClient } from 'remora';
import type { SimLoop } from '../common/env/loop.ts';
import { ProcessClock } from '../common/env/process-clock.ts';
import { seedOf } from '../common/hash.ts';
import type { Trace } from '../common/trace.ts';
import type { LinkNetwork, Party } from './env/link-network.ts';
import { tracingLogger } from './env/tracing-logger.ts';
import { type ClusterOptions, ownRate } from './options.ts';
import { credentialsOf, userOfClient } from './users.ts';

export interface ClientDeps {
  readonly id: number;
  readonly seed: number;
  readonly loop: SimLoop;
  readonly trace: Trace;
  readonly links: LinkNetwork;
  readonly endpoints: readonly string[];
  readonly options: ClusterOptions;
  readonly fail: (error: unknown) => void;
  /** A life ended silently. */
  readonly ended: (life: ClientLife) => void;
}

interface Asked {
  readonly what: string;
  readonly beganMs: number;
}

/** One life of a client, with its connection. */
export interface ClientLife {
  /** Differs from that of any other client, and of earlier lives of this one. */
  readonly name: string;
  readonly client: SimClient;
  readonly clock: ProcessClock;
  readonly random: SeededRandom;
  readonly remora: RemoraClient;
  /** Connects the same process once more, as somebody else or through other gateways. */
  readonly connect: (as: Partial<ClientOptions>) => Promise<RemoraClient>;
  /** Operations that have not been answered. */
  readonly waitsFor: Set<Asked>;
}

/** The life of a client that is connected. */
export function lifeOf({ id, life }: SimClient): ClientLife {
  assert(life !== undefined, `client ${id} is connected`);
  return life;
}

const CONNECT_TIMEOUT_MS = 4_000;
const KNOWS_ONE_OF = 3;
/** Sessions of a vanished client, and their locks, live on for this long. */
export const SESSION_TTL_MS = 5_000;

export class SimClient {
  readonly id: number;
  readonly clock: ProcessClock;
  lives = 0;
  /** Operations that were answered, over all lives. */
  answered = 0;
  readonly #deps: ClientDeps;
  #party: Party | undefined;
  #life: ClientLife | undefined;
  #working = false;

  constructor(deps: ClientDeps) {
    this.id = deps.id;
    this.#deps = deps;
    const rate = ownRate(deps.seed, deps.id, deps.options);
    this.clock = new ProcessClock(deps.loop, deps.id * 1_000_000, () => undefined, rate);
  }

  /** It is given one endpoint, and discovers the others. */
  get #knowsOne(): boolean {
    return this.id % KNOWS_ONE_OF === 0;
  }

  get running(): boolean {
    return this.#party !== undefined;
  }

  /** Absent until it is connected. */
  get life(): ClientLife | undefined {
    return this.#life;
  }

  /** Its work is not done. */
  get working(): boolean {
    return this.#party !== undefined && this.#working;
  }

  /** Connects, however long that takes, and then does `work`. */
  start(work: (life: ClientLife) => Promise<void>): void {
    const { seed, trace } = this.#deps;
    this.lives++;
    this.clock.begin();
    const party: Party = { id: this.id, door: this.clock.door() };
    this.#party = party;
    this.#working = true;
    trace.add('start', this.id, 0, this.lives);
    const random = new SeededRandom(seedOf(seed, this.id, this.lives));
    party.door(() => {
      void this.#connect(party, random)
        .then((remora) => {
          const life = {
            name: `${this.id}.${this.lives}`,
            client: this,
            clock: this.clock,
            random,
            remora,
            connect: (as: Partial<ClientOptions>) => this.#open(party, random, as),
            waitsFor: new Set<Asked>(),
          };
          this.#life = life;
          return work(life);
        })
        .then(() => {
          this.#working = false;
        })
        .catch(this.#deps.fail);
    });
  }

  async #connect(party: Party, random: SeededRandom): Promise<RemoraClient> {
    const { endpoints, options } = this.#deps;
    for (;;) {
      const opened = await this.#open(party, random, {
        endpoints: this.#knowsOne ? [endpoints[random.int(endpoints.length)] ?? ''] : endpoints,
        ...(options.authenticated && credentialsOf(userOfClient(this.id))),
      }).catch(() => undefined);
      if (opened !== undefined) return opened;
    }
  }

  #open(party: Party, random: SeededRandom, as: Partial<ClientOptions>): Promise<RemoraClient> {
    const { links, trace, endpoints, options } = this.#deps;
    const ports = {
      clock: this.clock,
      random,
      logger: tracingLogger(trace, this.id),
      connectLink: (target: { readonly address: string; readonly nodeId: number }) =>
        links.connect(party, target, undefined),
      liveness: { hold() {}, release() {} },
    };
    return RemoraClient.open(ports, {
      endpoints,
      requestTimeout: options.requestTimeoutMs,
      connectTimeout: CONNECT_TIMEOUT_MS,
      sessionTtl: SESSION_TTL_MS,
      ...as,
    });
  }

  /** The process is gone; its machine closes its connections unless it lost power. */
  vanish(power: boolean): void {
    const party = this.#party;
    if (party === undefined) return;
    this.#deps.trace.add('end', this.id, 0, power ? 1 : 0);
    this.clock.kill();
    this.#deps.links.ended(party, !power);
    if (this.#life !== undefined) this.#deps.ended(this.#life);
    this.#party = undefined;
    this.#life = undefined;
  }

  /** Ends the process like its user. */
  async close(): Promise<void> {
    const life = this.#life;
    const party = this.#party;
    if (life === undefined || party === undefined) return;
    await new Promise<void>((resolve) => party.door(() => void life.remora.close().then(resolve)));
    this.#deps.trace.add('end', this.id, 0, 2);
    this.#deps.links.ended(party, true);
    this.#party = undefined;
    this.#life = undefined;
  }
}
