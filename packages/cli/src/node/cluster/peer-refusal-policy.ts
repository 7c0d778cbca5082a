import { type Clock, type ErrorCode, type Logger, ServiceError } from '@remora/base';
import type { FrameLink } from '@remora/protocol';
import { CommandError } from '../../exit-codes.ts';
import type { PeerRefusal } from '../platform.ts';

/**
 * What it means when a peer refuses this node.
 *
 * ST1. Until its cluster has taken it, a node that is refused cannot tell somebody else's mistake from its own: wrong
 *      options, or a data directory that was lost. It ends, and says why.
 * ST2. The masters take a node for good, under one id and one incarnation. From then on, in later lives too, only they
 *      can refuse it, in answers to what it asks them. A peer that refuses its connections is another cluster at an
 *      address that was a member's, or a node that was itself started with a copied name: it counts as unreachable, and
 *      is logged.
 * ST3. A member that was met shows that the cluster is the right one. It does not show that the node is the one that
 *      the cluster knows: it may never have met that one.
 */
export class PeerRefusalPolicy {
  readonly #deps: PeerRefusalPolicyDeps;
  #joined = false;
  #met = false;
  /** When each was spoken of last. */
  readonly #saidMs = new Map<string, number>();

  constructor(deps: PeerRefusalPolicyDeps) {
    this.#deps = deps;
  }

  /** The masters have given this node its id. (ST2) */
  joined(): void {
    this.#joined = true;
  }

  /** A member of the cluster and this node have taken each other for what they say they are. (ST3) */
  met(): void {
    this.#met = true;
  }

  /** A peer has refused this node. */
  refused(by: string, { code, message }: PeerRefusal): void {
    if (isRefusal(code) && this.#isFinal(code))
      this.#deps.onFinal(new CommandError('dataDir', `${by} refuses this node: ${message}`));
    else this.#say(by, code, message);
  }

  /** The same of a link that is dialled: to whoever uses it, a peer that does not matter is one that is not there. */
  over(link: FrameLink, by: string): FrameLink {
    const seen = (error: ServiceError): ServiceError => {
      const { code, message } = error;
      if (!isRefusal(code) || this.#isFinal(code)) return error;
      this.#say(by, code, message);
      return new ServiceError('UNAVAILABLE', message, { cause: error });
    };
    return {
      start: (receiver) =>
        link.start({
          onOpen: () => receiver.onOpen(),
          onHeard: () => receiver.onHeard?.(),
          onFrame: (frame) => receiver.onFrame(frame),
          onDrain: () => receiver.onDrain(),
          onClose: (error) => receiver.onClose(seen(error)),
        }),
      send: (frame) => link.send(frame),
      close: (reason) => link.close(reason),
    };
  }

  #isFinal(code: Refusal): boolean {
    if (this.#joined || this.#deps.isMember()) return false;
    return code === 'NODE_CONFLICT' || !this.#met;
  }

  #say(by: string, code: ErrorCode, reason: string): void {
    const { clock, logger } = this.#deps;
    const nowMs = clock.monotonicMs();
    for (const [peer, saidMs] of this.#saidMs) if (nowMs - saidMs >= SAID_MS) this.#saidMs.delete(peer);
    if (this.#saidMs.has(by)) return;
    this.#saidMs.set(by, nowMs);
    const advice = isRefusal(code) ? { advice: ADVICE[code] } : {};
    logger.warn({ peer: by, code, reason, ...advice }, 'a peer refuses this node');
  }
}

export interface PeerRefusalPolicyDeps {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly logger: Logger;
  /** Whether the masters have named this node as one of the cluster, in this life or an earlier one. */
  readonly isMember: () => boolean;
  /** The node must not go on. */
  readonly onFinal: (error: CommandError) => void;
}

type Refusal = keyof typeof ADVICE;

/** A peer that goes on refusing is spoken of this often. */
const SAID_MS = 60_000;

const ADVICE = {
  WRONG_CLUSTER:
    'a node of another cluster answers at that address: start the member that belongs there, or remove it with "remora admin nodes remove"',
  NODE_CONFLICT:
    'the node at that address knows another node with the id of this one: stop the node that was started with a copied name or an empty data directory',
} as const;

function isRefusal(code: ErrorCode): code is Refusal {
  return code in ADVICE;
}
