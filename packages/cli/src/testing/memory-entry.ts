import type { Clock } from '@remora/base';
import { ServiceError } from '@remora/base';
import {
  BackendDecorator,
  type BackendDone,
  createPipeRegistry,
  type RequestOptions,
  servePipe,
} from '@remora/gateway';
import type { Command, CommandResult, ServedLink } from '@remora/protocol';
import { createMemoryLink, type MemoryLinkPair } from '@remora/protocol/testing';
import type { EntryDeps, NodeEntry } from '../node/platform.ts';

/** Learns of each session that a client begins. */
export type OnSession = (lease: bigint) => void;

/** The entry of a node in memory: clients of the SDK, over links in memory. */
export class MemoryEntry implements NodeEntry {
  readonly #deps: EntryDeps;
  readonly #clock: Clock;
  readonly #links = new Set<ServedLink>();
  #serves = false;

  constructor(deps: EntryDeps) {
    this.#deps = deps;
    this.#clock = deps.clock;
  }

  async start(): Promise<void> {
    this.#serves = true;
  }

  async stop(): Promise<void> {
    this.#serves = false;
    for (const link of [...this.#links]) link.close(new ServiceError('UNAVAILABLE', 'the test node is stopping'));
  }

  /** Opens a client's connection; undefined while the node does not serve. */
  open(onSession: OnSession): MemoryLinkPair | undefined {
    if (!this.#serves) return undefined;
    const { backend, authenticator: identification, options, health, shownClusterId: cluster } = this.#deps;
    const { requestBytesMax, txnOpsMax } = options;
    const pair = createMemoryLink(this.#clock);
    const registry = createPipeRegistry(new SessionsSeen(backend, onSession), {
      ...{ identification, cluster, requestLimits: { requestBytesMax, txnOpsMax } },
      conditions: () => health.conditions(),
    });
    const link = servePipe({
      link: pair.server,
      registry,
      clock: this.#clock,
      connection: { door: 'pipe', certificateName: undefined, address: '127.0.0.1', token: undefined },
      onClose: () => this.#links.delete(link),
    });
    this.#links.add(link);
    return pair;
  }
}

class SessionsSeen extends BackendDecorator {
  readonly #onSession: OnSession;

  constructor(inner: EntryDeps['backend'], onSession: OnSession) {
    super(inner);
    this.#onSession = onSession;
  }

  override command(command: Command, options: RequestOptions, done: BackendDone<CommandResult>): () => void {
    if (command.type !== 'leaseGrant') return this.inner.command(command, options, done);
    return this.inner.command(command, options, (error, reply) => {
      if (reply?.result.type === 'leaseGrant') this.#onSession(reply.result.id);
      done(error, reply);
    });
  }
}
