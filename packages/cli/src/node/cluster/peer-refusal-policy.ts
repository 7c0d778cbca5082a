import { type Clock, type ErrorCode, type Logger, ServiceError } from '@remora/base';
import type { FrameLink } from '@remora/protocol';
import { CommandError } from '../../exit-codes.ts';
import type { PeerRefusal } from '../platform.ts';

/**
 * Decides what a peer's refusal means for this node.
 *
 * ST1. Until its cluster has accepted it, a refused node cannot tell whether the mistake is its own (wrong options, a
 *      lost data directory) or the peer's. It ends with an explanation.
 * ST2. The masters accept a node permanently, with one id and one incarnation. From then on, in later lives too, only
 *      they can refuse it, in answers to its requests. Another peer that refuses its connections is either of another
 *      cluster, at the former address of a member, or was itself started with a copied name: it counts as unreachable,
 *      and is logged.
 * ST3. Before that, a member that refuses ends this node even if others have accepted it: the others may have lost
 *      their data as this node has, or have the same wrong list of founders, and together they would found a second
 *      cluster beside the one that exists. Only a refused certificate is ignored once a member has accepted it.
 */
export class PeerRefusalPolicy {
  readonly #deps: PeerRefusalPolicyDeps;
  #joined = false;
  #met = false;
  /** When each peer was last logged. */
  readonly #saidMs = new Map<string, number>();

  constructor(deps: PeerRefusalPolicyDeps) {
    this.#deps = deps;
  }

  /** The masters have assigned this node its id. (ST2) */
  joined(): void {
    this.#joined = true;
  }

  /** A member of the cluster and this node have accepted each other's identity. (ST3) */
  met(): void {
    this.#met = true;
  }

  /** A peer has refused this node. */
  refused(by: string, { code, message }: PeerRefusal): void {
    if (isRefusal(code) && this.#isFinal(code))
      this.#deps.onFinal(new CommandError('dataDir', `${by} refuses this node: ${message}`));
    else this.#say(by, code, message);
  }

  /** The same for a dialled link: its user sees a peer that may be ignored as one that is unreachable. */
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
    return code !== 'UNAUTHENTICATED' || !this.#met;
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
  /** Whether the masters have named this node as a member of the cluster, in this life or an earlier one. */
  readonly isMember: () => boolean;
  /** The node must stop. */
  readonly onFinal: (error: CommandError) => void;
}

type Refusal = keyof typeof ADVICE;

/** The interval at which a peer that keeps refusing is logged. */
const SAID_MS = 60_000;

const ADVICE = {
  WRONG_CLUSTER:
    'a node of another cluster answers at that address: start the member that belongs there, or remove it with "remora admin nodes remove"',
  NODE_CONFLICT:
    'the node at that address knows another node with the id of this one: stop the node that was started with a copied name or an empty data directory',
  UNAUTHENTICATED:
    'the node at that address does not accept the certificate of this one: compare its authority, dates and names by "remora cert inspect"',
  VERSION_REFUSED:
    'the reason says which release to install; "remora admin upgrade status" shows what each node can write',
} as const;

function isRefusal(code: ErrorCode): code is Refusal {
  return code in ADVICE;
}
