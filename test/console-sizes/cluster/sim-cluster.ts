/**
 * Hundreds of nodes in one process, over virtual time. The first machine has the product's real ports, so browsers and
 * the command line see a cluster like any other.
 */
import { type Clock, SeededRandom, type Timer } from '@remora/base';
import type { AssembledNode } from '../../../packages/cli/src/node/assemble.ts';
import type { EntryDeps } from '../../../packages/cli/src/node/platform.ts';
import { LocalNetwork } from '../../../packages/raft/src/testing/local-network.ts';
import { LinkNetwork } from '../../sim/cluster/env/link-network.ts';
import { PeerNetwork } from '../../sim/cluster/env/peer-network.ts';
import { SimLoop } from '../../sim/common/env/loop.ts';
import { ApiClient } from './api-client.ts';
import { type ClusterPlan, FOUNDERS, startMachine } from './sim-machine.ts';

const HEALTHY = {
  ...{ blocked: false, refuses: false, reorder: false },
  ...{ dropPerMille: 0, duplicatePerMille: 0, delayMs: 0, jitterMs: 0, snapshotBreakPerMille: 0 },
};

export class SimCluster {
  readonly loop = new SimLoop();
  readonly clock: Clock;
  readonly nodes: AssembledNode[] = [];
  /** A client of each machine. */
  readonly clients: ApiClient[] = [];
  failure: unknown;

  constructor() {
    const { loop } = this;
    const beganMs = Date.now();
    // People see today's date.
    this.clock = {
      monotonicMs: () => loop.monotonicMs(),
      wallMs: () => beganMs + Math.floor(loop.monotonicMs()),
      setTimer: (delayMs: number, fn: () => void): Timer => loop.setTimer(delayMs, fn),
      setImmediate: (fn) => loop.setImmediate(fn),
    };
  }

  /** Founds the cluster. `join` adds the other nodes. */
  async found(plan: ClusterPlan): Promise<(count: number) => Promise<void>> {
    const { loop, clock } = this;
    const network = new LocalNetwork({ clock, random: new SeededRandom(2), faults: HEALTHY });
    const networks = {
      links: new LinkNetwork({ loop, random: new SeededRandom(3), faultsOf: () => HEALTHY, onFrame: () => undefined }),
      peers: new PeerNetwork(network, () => HEALTHY),
    };
    const failed = (error: unknown): void => {
      this.failure ??= error;
    };
    const onEntry = (entry: EntryDeps): void => {
      this.clients.push(new ApiClient(entry));
    };
    const join = async (count: number): Promise<void> => {
      const all = this.nodes.length + count;
      for (let id = this.nodes.length + 1; id <= all; id++) {
        startMachine(id, { clock, plan, networks, failed, onEntry }).then((node) => this.nodes.push(node), failed);
      }
      await this.until(() => this.nodes.length === all);
    };
    await join(FOUNDERS);
    return join;
  }

  /** Virtual time passes as fast as the processor allows. */
  async until(isDone: () => boolean): Promise<void> {
    await this.loop.drive(() => this.failure === undefined && !isDone());
    if (this.failure !== undefined) throw this.failure;
  }
}
