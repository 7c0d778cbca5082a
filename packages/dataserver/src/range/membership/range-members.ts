import type { Clock } from '@remora/base';
import type { ConfChange, LogPosition, Refused } from '@remora/raft';
import { admitsChange, encodePlaces, type ReplicaPlace } from '../../state/reshape/membership.ts';
import type { ReplicaContext } from '../replica-context.ts';
import { type Carried, carryOut, type MemberOrder } from './member-orders.ts';
import { PeerLiveness } from './peer-liveness.ts';

/** A replica that its leader has not heard for this long does not count as following. */
const SILENT_MS = 3_000;
/** A look of this age is new enough. */
const LOOKED_MS = 1_000;

/** The other replicas of a range, for its leader. */
export class RangeMembers {
  readonly liveness = new PeerLiveness();
  readonly #context: ReplicaContext;
  readonly #clock: Clock;

  constructor(context: ReplicaContext, clock: Clock) {
    this.#context = context;
    this.#clock = clock;
  }

  /** Something has happened to the group of the range. */
  touched(): void {
    this.liveness.touched();
  }

  termBegan(): void {
    this.liveness.clear();
  }

  /** Called about every second while this replica leads. The reports to the masters look as well. */
  look(): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.liveness.lookedMs < LOOKED_MS) return;
    this.liveness.look(this.#context.group.status().progress, nowMs);
  }

  /** Whether the membership may be changed like this: not while the range is sealed (merges.ts MR1). */
  admits(change: ConfChange): boolean {
    const { sealed, state } = this.#context;
    return sealed === undefined && admitsChange(state.descriptor, change);
  }

  /** Carries out an order of the master (member-orders.ts). */
  carryOut(order: MemberOrder): Carried {
    const { group, state } = this.#context;
    const follows = (replicaId: number): boolean => this.#follows(replicaId);
    const propose = (change: ConfChange, places: readonly ReplicaPlace[]) => this.change(change, places);
    return carryOut({ group, descriptor: state.descriptor, follows, propose }, order);
  }

  /** Whether a replica has acknowledged something in this term, and was heard lately. */
  #follows(replicaId: number): boolean {
    const peer = this.#context.group.status().progress.find(({ replica }) => replica === replicaId);
    return peer !== undefined && peer.match > 0 && this.liveness.silentMs(peer, this.#clock.monotonicMs()) < SILENT_MS;
  }

  /**
   * Proposes a change of membership, on the leader. `places` names the nodes of the joining replicas; these nodes
   * create them when the master tells them to. The change is done when the descriptor shows it.
   */
  change(change: Omit<ConfChange, 'context'>, places: readonly ReplicaPlace[]): LogPosition | Refused {
    const whole = { ...change, context: encodePlaces(places) };
    return this.admits(whole) ? this.#context.group.proposeConf(whole) : { refused: 'confInvalid' };
  }
}
