/**
 * The network of a cluster of real processes on one machine: a proxy between every two nodes per dialling direction,
 * and one in front of each node's client port. Faults are rules on the links between parties.
 */
import { SeededRandom } from '@remora/base';
import { freePorts } from '../../e2e/free-ports.ts';
import { FaultProxy } from './fault-proxy.ts';
import { Link, type LinkFaults } from './link.ts';

const HOST = '127.0.0.1';

/** All clients together, as a party of the network; nodes count from 1. */
export const CLIENTS = 0;

export interface LinkRule extends LinkFaults {
  readonly on: (from: number, to: number) => boolean;
}

interface Way {
  readonly from: number;
  readonly to: number;
  readonly port: number;
  readonly proxy: FaultProxy;
}

export class FaultNetwork {
  readonly nodes: number;
  readonly #links: ReadonlyMap<string, Link>;
  readonly #ways: Way[] = [];

  private constructor(nodes: number, seed: number) {
    this.nodes = nodes;
    const links = new Map<string, Link>();
    const random = new SeededRandom(seed ^ 0x6c696e6b);
    for (let from = 0; from <= nodes; from++) {
      for (let to = 0; to <= nodes; to++) if (from !== to) links.set(nameOf(from, to), new Link(random));
    }
    this.#links = links;
  }

  /** Opens the proxies in front of the given ports of the nodes, starting with the first node. */
  static async open(
    targets: readonly { readonly peer: number; readonly client: number }[],
    seed: number,
  ): Promise<FaultNetwork> {
    const network = new FaultNetwork(targets.length, seed);
    for (const [i, { peer, client }] of targets.entries()) {
      const to = i + 1;
      for (let from = 0; from <= targets.length; from++) {
        if (from !== to) await network.#open(from, to, from === CLIENTS ? client : peer);
      }
    }
    return network;
  }

  /** The address at which `from` dials `to`: `host:port`. */
  address(from: number, to: number): string {
    const way = this.#ways.find((each) => each.from === from && each.to === to);
    if (way === undefined) throw new Error(`nobody dials ${to} from ${from}`);
    return `${HOST}:${way.port}`;
  }

  /** Adds faults to all links that the rule selects. The returned function removes them. */
  add({ on, ...faults }: LinkRule): () => void {
    const removals: (() => void)[] = [];
    for (const [name, link] of this.#links) {
      const [from = 0, to = 0] = name.split('>').map(Number);
      if (on(from, to)) removals.push(link.add(faults));
    }
    return () => {
      for (const remove of removals) remove();
    };
  }

  /** Breaks the open connections between the parties, in both dialling directions. Returns their number. */
  reset(between: (a: number, b: number) => boolean): number {
    let broken = 0;
    for (const { from, to, proxy } of this.#ways) {
      if (!between(from, to)) continue;
      broken += proxy.connections;
      proxy.reset();
    }
    return broken;
  }

  close(): void {
    for (const { proxy } of this.#ways) proxy.close();
  }

  async #open(from: number, to: number, targetPort: number): Promise<void> {
    const proxy = new FaultProxy({ targetPort, there: this.#link(from, to), back: this.#link(to, from) });
    const [port = 0] = await freePorts(HOST, 1);
    await proxy.listen(port);
    this.#ways.push({ from, to, port, proxy });
  }

  #link(from: number, to: number): Link {
    const link = this.#links.get(nameOf(from, to));
    if (link === undefined) throw new Error(`there is no link from ${from} to ${to}`);
    return link;
  }
}

function nameOf(from: number, to: number): string {
  return `${from}>${to}`;
}
