import { ServiceError } from '@remora/base';
import { NO_REPLICA, type Role } from '@remora/raft';
import type { RangeFields } from '../../state/range-fields.ts';

export interface RoleChange {
  readonly role: Role;
  readonly term: number;
  /** The replica that leads; NO_REPLICA: unknown. */
  readonly leader: number;
}

/** The leader of a range, as one of its replicas last learned: itself, from its election on, or another replica. */
export class Leadership {
  readonly #state: Pick<RangeFields, 'descriptor'>;
  #ownTerm = 0;
  #told: RoleChange = { role: 'follower', term: 0, leader: NO_REPLICA };
  #serving = false;

  /** The descriptor names the nodes of the replicas. */
  constructor(state: Pick<RangeFields, 'descriptor'>) {
    this.#state = state;
  }

  /** The term in which this replica leads; 0: it does not. */
  get ownTerm(): number {
    return this.#ownTerm;
  }

  get leading(): boolean {
    return this.#ownTerm !== 0;
  }

  /** Whether it leads and has applied an entry of its own term. */
  get serving(): boolean {
    return this.#serving;
  }

  /** Called by the group of this replica. The replica itself leads only after `begin`. */
  told(change: RoleChange): void {
    this.#told = change;
  }

  /** This replica leads in that term from now on, and serves once an entry of it is applied. */
  begin(term: number): void {
    this.#ownTerm = term;
  }

  serve(): void {
    this.#serving = true;
  }

  end(): void {
    this.#ownTerm = 0;
    this.#serving = false;
  }

  /** The node that leads; 0: unknown. */
  get node(): number {
    const { leader } = this.#told;
    return this.#state.descriptor.replicas.find(({ replicaId }) => replicaId === leader)?.nodeId ?? 0;
  }

  /** The node that leads in a term, as reported together with the applied entries; 0: unknown, or of another term. */
  nodeOf(term: number): number {
    return term === this.#told.term ? this.node : 0;
  }

  notLeader(): ServiceError {
    const { rangeId } = this.#state.descriptor;
    return new ServiceError('NOT_LEADER', 'this replica does not lead the range', {
      details: { rangeId, leaderNode: this.leading ? 0 : this.node },
    });
  }
}
