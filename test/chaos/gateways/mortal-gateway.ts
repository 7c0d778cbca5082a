/**
 * A gateway in a separate process, which ends at a chosen message of a transaction that it coordinates: before the
 * message leaves, right after it, or when it was answered. The gateway is the program that users have: `LinkProxy`,
 * which forwards its messages, recognizes them and kills the gateway.
 *
 * MG1. If the gateway ends before a message, the message never arrives. If it ends after a message, the message
 *      arrives. If it ends at an answer, the answer never arrives.
 */
import { freePorts } from '../../e2e/free-ports.ts';
import { NodeProcess, nodePaths, type Ports } from '../../e2e/node-process.ts';
import { type FrameEar, LinkProxy } from './link-proxy.ts';
import { LinkTap, type TxnMessage } from './link-tap.ts';

export const WHEN = ['before', 'behind', 'after'] as const;

/** `after`: it has been answered. */
export interface Moment {
  readonly when: (typeof WHEN)[number];
  readonly message: TxnMessage;
}

export interface GatewayOptions {
  readonly name: string;
  readonly host: string;
  readonly ports: Ports;
  readonly dir: string;
  /** The nodes of its cluster, by their names and peer ports. */
  readonly nodes: readonly Pick<NodeProcess, 'name' | 'peer'>[];
  readonly flags: Readonly<Record<string, string>>;
}

/** A message is reported when it is sent, and when it is answered. */
type Hearing = 'asked' | 'answered';

interface Fate {
  readonly moment: Moment;
  /** How many such messages still pass before. */
  left: number;
  readonly struck: () => void;
}

export class MortalGateway {
  readonly process: NodeProcess;
  readonly #proxies: readonly LinkProxy[];
  readonly #fates = new Set<Fate>();
  /** It was killed, but its end is not observed yet: what it sent before still arrives. */
  #dying = false;

  private constructor({ name, host, ports, dir, nodes, flags }: GatewayOptions, proxyPorts: readonly number[]) {
    this.#proxies = nodes.map(({ peer }, i) => {
      return new LinkProxy({ target: peer, host, port: proxyPorts[i] ?? 0, listen: () => this.#ear() });
    });
    const addresses = this.#proxies.map(({ address }) => address);
    this.process = new NodeProcess({
      ...{ name, host, ports },
      ...nodePaths(dir, name),
      flags: {
        ...flags,
        roles: 'gateway',
        join: addresses.join(','),
        'peer-proxies': nodes.map((node, i) => `${node.name}=${addresses[i]}`).join(','),
      },
    });
  }

  /** Its proxies are open. It is not started yet. */
  static async open(options: GatewayOptions): Promise<MortalGateway> {
    const { host, nodes } = options;
    const gateway = new MortalGateway(options, await freePorts(host, nodes.length));
    await Promise.all(gateway.#proxies.map((proxy) => proxy.open()));
    return gateway;
  }

  /**
   * Kills it at this moment, after `skipped` messages of the kind have passed, and then calls `struck` at once. Returns
   * a function that cancels the kill. If several moments are set, the first one that is reached counts.
   */
  endAt(moment: Moment, skipped: number, struck: () => void): () => void {
    const fate: Fate = { moment, left: skipped, struck };
    this.#fates.add(fate);
    return () => this.#fates.delete(fate);
  }

  async stop(): Promise<void> {
    this.#fates.clear();
    await this.process.end('SIGKILL');
    for (const proxy of this.#proxies) proxy.close();
  }

  #ear(): FrameEar {
    const tap = new LinkTap();
    return {
      toNode: (frame) => this.#mayPass(tap.asked(frame), 'asked'),
      toGateway: (frame) => this.#mayPass(tap.answered(frame), 'answered'),
    };
  }

  /** MG1. */
  #mayPass(messages: readonly TxnMessage[], how: Hearing): boolean {
    if (messages.length === 0 || this.#dying || !this.process.running) return true;
    for (const fate of this.#fates) {
      if (!comes(fate.moment, messages, how)) continue;
      fate.left -= 1;
      if (fate.left >= 0) continue;
      this.#kill();
      fate.struck();
      return fate.moment.when === 'behind';
    }
    return true;
  }

  #kill(): void {
    this.#dying = true;
    this.process.signal('SIGKILL');
    void this.process.exit.then(() => {
      this.#dying = false;
    });
  }
}

function comes({ when, message }: Moment, messages: readonly TxnMessage[], how: Hearing): boolean {
  return messages.includes(message) && (when === 'after') === (how === 'answered');
}
