/**
 * Tells callers when a revision of users and roles is in force on all live nodes.
 *
 * AR1. A node has confirmed a revision when a heartbeat says that it decides by it, or by a later one. Every node that
 *      was not removed counts, except for nodes that were silent for so long that they are suspect. These go on with
 *      what they know for at most `AUTH_TRUST_MS` (auth's known-auth.ts KA2).
 * AR2. A new leader of the masters has heard of no node. It counts all of them until they have been silent for long
 *      enough under it.
 * AR3. At most `WAITS_MAX` callers wait. When this master stops leading, they are answered that it does not lead.
 */
import { ServiceError } from '@remora/base';
import type { Done } from '@remora/protocol';
import type { MasterState } from '../metadata/master-state.ts';
import type { NodeReports } from './node-reports.ts';

export interface AuthRolloutDeps {
  readonly state: Pick<MasterState, 'nodes' | 'isRemoved'>;
  readonly reports: Pick<NodeReports, 'last'>;
  readonly isSilent: (nodeId: number) => boolean;
  readonly notLeader: () => ServiceError;
}

/** AR3. Administrators change users and roles, and few at a time. */
const WAITS_MAX = 256;

interface Waiting {
  readonly revision: number;
  readonly done: Done<undefined>;
}

export class AuthRollout {
  readonly #deps: AuthRolloutDeps;
  readonly #waiting = new Set<Waiting>();

  constructor(deps: AuthRolloutDeps) {
    this.#deps = deps;
  }

  /** Answers when all live nodes have confirmed the revision. Returns a function that ends the wait. */
  wait(revision: number, done: Done<undefined>): () => void {
    if (this.#waiting.size >= WAITS_MAX) {
      done(new ServiceError('RESOURCE_EXHAUSTED', 'too many changes of users and roles wait for nodes'), undefined);
      return nothing;
    }
    const waiting = { revision, done };
    this.#waiting.add(waiting);
    this.look();
    return () => void this.#waiting.delete(waiting);
  }

  /** After a heartbeat, and several times a second, as nodes become suspect. */
  look(): void {
    if (this.#waiting.size === 0) return;
    const confirmed = this.#confirmed();
    for (const waiting of [...this.#waiting]) {
      if (waiting.revision > confirmed) continue;
      this.#waiting.delete(waiting);
      waiting.done(undefined, undefined);
    }
  }

  /** AR3. */
  roleChanged(): void {
    const all = [...this.#waiting];
    this.#waiting.clear();
    for (const { done } of all) done(this.#deps.notLeader(), undefined);
  }

  /** The newest revision that all live nodes have confirmed (AR1, AR2). */
  #confirmed(): number {
    const { state, reports, isSilent } = this.#deps;
    let confirmed = Number.POSITIVE_INFINITY;
    for (const { nodeId } of state.nodes()) {
      if (state.isRemoved(nodeId) || isSilent(nodeId)) continue;
      confirmed = Math.min(confirmed, reports.last(nodeId)?.authRevision ?? 0);
    }
    return confirmed;
  }
}

function nothing(): void {}
