/**
 * The scheduling on the masters' leader, for one term. Its inputs are the reports of nodes and ranges, and the
 * replicated decisions (duties, settings, pauses).
 *
 * CC1. A new leader knows only the descriptors of ranges and nodes. It looks for problems and improvements only once it
 *      has heard of every node and every range, or has waited long enough for them: it does not repair what it has
 *      merely not heard of yet.
 * CC2. Only decisions by people are replicated, and for people what has ended (operator-history.ts). The next leader finds
 *      unfinished work of its predecessor in the reports of the ranges (scheduling/range-check.ts).
 * CC3. Ranges that were merged away are forgotten before the range that took over their keys is examined.
 * CC4. A decision by people about a node's duty is not undone by one that was made on an earlier state: while such a
 *      change is not applied, no window is ended, and no change is considered done already.
 * CC5. The check that a node may go used the applied duties. So while the duty of another node is being changed, no
 *      node is taken out of service: each of two concurrent requests would have counted on the other node.
 */
import { type Clock, formatDurationMs, type Logger, ServiceError } from '@remora/base';
import type {
  AskSplitRequest,
  Done,
  HealthCondition,
  NodeDescriptor,
  OrderResult,
  PauseSchedulerRequest,
  RangeDescriptor,
  RangeInstruction,
  SetNodeDutyRequest,
} from '@remora/protocol';
import { endedOperator } from '../admin/operator-history.ts';
import { schedulingConditions } from '../admin/scheduling-check.ts';
import { type ClusterSettings, schedulingSettings } from '../admin/settings.ts';
import type { MasterCommand } from '../metadata/master-commands.ts';
import type { MasterState } from '../metadata/master-state.ts';
import type { NodeReports } from '../nodes/node-reports.ts';
import type { RangeDirector, ReportedRange } from '../ranges/range-orders.ts';
import type { Liveness } from '../scheduling/cluster-model.ts';
import { SchedulingDirector } from '../scheduling/range-director.ts';
import { Scheduling } from '../scheduling/scheduling.ts';

export interface ScheduleCoordinatorDeps {
  readonly term: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly state: MasterState;
  readonly reports: NodeReports;
  readonly settings: () => ClusterSettings;
  readonly nextReplicaId: () => number | undefined;
  readonly propose: (command: MasterCommand, done: (error: ServiceError | undefined) => void) => void;
}

/** How long the coordinator waits for the reports of all nodes and ranges (CC1). */
const INFORMED_WITHIN_MS = 15_000;
const NOT_INFORMED =
  "the masters' leader is new and has not heard from all nodes and ranges yet; try again in a few seconds";
const MAINTENANCE_MAX_MS = 30 * 24 * 3_600_000;
/** Requested splits that have not been reported after this time are given up. */
const SPLIT_SHOWN_WITHIN_MS = 60_000;
/** The maximum number of operators in one term: ids of different terms differ. */
const OPERATORS_PER_TERM_MAX = 1_000_000;

export class ScheduleCoordinator implements RangeDirector {
  readonly scheduling: Scheduling;
  readonly #deps: ScheduleCoordinatorDeps;
  readonly #director: SchedulingDirector;
  readonly #lively = new Map<number, { readonly liveness: Liveness; readonly sinceMs: number }>();
  /** By range: when the ids of a split were allocated, while the split is not reported yet. */
  readonly #splitting = new Map<number, { readonly version: number; readonly atMs: number }>();
  #settings: ClusterSettings | undefined;
  /** The list of ranges in which those of the model were looked up last. */
  #ranges: readonly RangeDescriptor[] | undefined;
  #informed = false;
  /** By node: changes of duties that are not answered (CC4, CC5). */
  readonly #dutiesInFlight: number[] = [];

  constructor(deps: ScheduleCoordinatorDeps) {
    this.#deps = deps;
    const { nextReplicaId, term, clock, propose } = deps;
    this.scheduling = new Scheduling({
      nextReplicaId,
      firstOperatorId: term * OPERATORS_PER_TERM_MAX + 1,
      onEnd: (record) => propose({ type: 'recordOperator', operator: endedOperator(record, clock) }, () => {}), // OH1
    });
    this.#director = new SchedulingDirector(this.scheduling, {
      monotonicMs: () => clock.monotonicMs(),
      beginsAtChosen: (rangeId) => deps.state.beginsAtChosen(rangeId),
    });
  }

  /** Why it starts nothing automatically now; undefined if it does. */
  get restsBecause(): string | undefined {
    if (!this.#deps.settings().scheduling) return 'scheduling is off: the setting "scheduling" is false';
    if (this.#informed) return undefined;
    return NOT_INFORMED;
  }

  get nowMs(): number {
    return this.#deps.clock.monotonicMs();
  }

  reported(range: ReportedRange): RangeInstruction | undefined {
    const known = this.scheduling.model.range(range.descriptor.rangeId)?.descriptor.epoch.version;
    if (known !== undefined && known !== range.descriptor.epoch.version) this.#forgetRanges(); // CC3
    return this.#director.reported(range);
  }

  ended(rangeId: number, instruction: RangeInstruction, result: OrderResult): void {
    this.#director.ended(rangeId, instruction, result);
  }

  /** Ranges that wait for instructions, whether or not their reports change. */
  rangesInWork(): readonly number[] {
    return this.scheduling.controller.active().map(({ rangeId }) => rangeId);
  }

  /** Called about every second while this master leads. */
  tick(): void {
    const { nowMs } = this;
    this.refresh();
    this.#endMaintenance();
    this.#informed ||= this.#isInformed();
    if (this.restsBecause === undefined) this.scheduling.tick(nowMs);
    else this.scheduling.controller.tick(nowMs);
  }

  /** The problems that it finds. */
  conditions(): readonly HealthCondition[] {
    return this.#informed ? schedulingConditions(this.scheduling, this.nowMs) : [];
  }

  /** The caller has checked that it is possible, as far as is known. */
  setDuty({ nodeId, duty, forMs }: SetNodeDutyRequest, done: Done<undefined>): void {
    const before = this.#deps.state.dutyOf(nodeId);
    if (duty === 'maintenance' && (forMs === 0 || forMs > MAINTENANCE_MAX_MS)) {
      const most = formatDurationMs(MAINTENANCE_MAX_MS);
      return done(
        new ServiceError(
          'INVALID_ARGUMENT',
          `invalid maintenance window: it must be longer than 0 and at most ${most}`,
        ),
        undefined,
      );
    }
    const stays = duty === before.duty && duty !== 'maintenance';
    if (stays && this.#dutiesInFlight.length === 0) return done(undefined, undefined); // CC4
    // CC1: missing nodes are not known yet.
    if ((duty === 'decommissioning' || duty === 'removed') && !this.#informed) {
      return done(new ServiceError('UNAVAILABLE', `not possible now: ${NOT_INFORMED}`), undefined);
    }
    const other = this.#dutiesInFlight.find((each) => each !== nodeId);
    if (duty !== 'serving' && other !== undefined) {
      return done(new ServiceError('UNAVAILABLE', `the duty of node ${other} is being changed; try again`), undefined); // CC5
    }
    const untilMs = duty === 'maintenance' ? Math.ceil(this.#deps.clock.wallMs() + forMs) : 0;
    this.#dutiesInFlight.push(nodeId);
    this.#change({ type: 'setDuty', nodeId, duty, untilMs }, (error) => {
      this.#dutiesInFlight.splice(this.#dutiesInFlight.indexOf(nodeId), 1);
      done(error, undefined);
    });
  }

  pauseScheduler({ name, forMs }: PauseSchedulerRequest, done: Done<undefined>): void {
    const untilMs = forMs === 0 ? 0 : Math.ceil(this.#deps.clock.wallMs() + forMs);
    this.#change({ type: 'pauseScheduler', name, untilMs }, done);
  }

  #change(command: MasterCommand, done: Done<undefined>): void {
    this.#deps.propose(command, (error) => {
      if (error !== undefined) return done(error, undefined);
      this.refresh();
      done(undefined, undefined);
    });
  }

  /** Takes over what was decided and heard since the last call. */
  refresh(): void {
    this.#configure();
    this.#forgetRanges();
    for (const node of this.#dataNodes()) this.#hearNode(node);
    this.#applyPauses();
  }

  /** Why no ids are allocated for a split now; undefined if they are. */
  splitRefusal({ range, cause }: AskSplitRequest): ServiceError | undefined {
    const { rangeId } = range;
    const known = this.scheduling.model.range(rangeId);
    if (known?.joint === true || known?.changePending === true) return later(rangeId, 'its membership is changing');
    if (cause === 'admin') return undefined;
    const { scheduling, splitsUnderWayMax } = this.#deps.settings();
    if (!scheduling) return later(rangeId, 'scheduling is off: the setting "scheduling" is false');
    if (splitsUnderWayMax === 0) return later(rangeId, 'splits are paused: the setting "splits-under-way-max" is 0');
    const operator = this.scheduling.controller.operatorOf(rangeId);
    if (operator !== undefined) return later(rangeId, `operator ${operator.operatorId} is running for it`);
    this.#forgetSplits();
    if (this.#splitting.has(rangeId) || this.#splitting.size < splitsUnderWayMax) return undefined;
    return later(rangeId, `${splitsUnderWayMax} others are being split ("splits-under-way-max")`);
  }

  /** Ids were allocated. */
  splitBegan({ range }: AskSplitRequest): void {
    this.#splitting.set(range.rangeId, { version: range.epoch.version, atMs: this.nowMs });
  }

  #forgetSplits(): void {
    for (const [rangeId, { version, atMs }] of this.#splitting) {
      const shows = (this.#deps.state.range(rangeId)?.epoch.version ?? version + 1) > version;
      if (shows || this.nowMs - atMs > SPLIT_SHOWN_WITHIN_MS) this.#splitting.delete(rangeId);
    }
  }

  #configure(): void {
    const settings = this.#deps.settings();
    if (settings === this.#settings) return;
    this.#settings = settings;
    this.scheduling.configure(schedulingSettings(settings));
  }

  /** CC3. Every range of the model was in the list of ranges when it was reported. */
  #forgetRanges(): void {
    const { model } = this.scheduling;
    const ranges = this.#deps.state.ranges();
    if (ranges === this.#ranges) return;
    this.#ranges = ranges;
    for (const { descriptor } of [...model.ranges()]) {
      const { rangeId } = descriptor;
      if (this.#deps.state.range(rangeId) === undefined) this.scheduling.rangeRemoved(rangeId);
    }
  }

  #dataNodes(): readonly NodeDescriptor[] {
    return this.#deps.state.nodes().filter(({ roles }) => roles.includes('data'));
  }

  #hearNode({ nodeId }: NodeDescriptor): void {
    const { state, reports, settings, clock } = this.#deps;
    const { nowMs } = this;
    const liveness = reports.stateOf(nodeId, nowMs, settings());
    const before = this.#lively.get(nodeId);
    const { sinceMs } = before?.liveness === liveness ? before : { sinceMs: nowMs };
    this.#lively.set(nodeId, { liveness, sinceMs });
    const { duty, untilMs } = state.dutyOf(nodeId);
    const { labels = {}, space } = reports.last(nodeId) ?? {};
    this.scheduling.nodeReported({
      ...{ nodeId, liveness, livenessSinceMs: sinceMs, duty, labels },
      ...(duty === 'maintenance' ? { maintenanceUntilMs: nowMs + untilMs - clock.wallMs() } : {}),
      capacityBytes: space?.capacityBytes ?? 0,
      availableBytes: space?.availableBytes ?? 0,
    });
  }

  /** Maintenance windows end automatically. */
  #endMaintenance(): void {
    if (this.#dutiesInFlight.length > 0) return; // CC4
    const wallMs = this.#deps.clock.wallMs();
    for (const { nodeId } of this.#deps.state.nodes()) {
      const { duty, untilMs } = this.#deps.state.dutyOf(nodeId);
      if (duty !== 'maintenance' || wallMs < untilMs) continue;
      this.#deps.logger.info({ node: nodeId }, 'the maintenance window of a node has ended');
      this.#deps.propose({ type: 'setDuty', nodeId, duty: 'serving', untilMs: 0 }, () => {});
    }
  }

  /** Replicated as times of the wall clock, which is similar on all masters. */
  #applyPauses(): void {
    const { state, clock } = this.#deps;
    const { schedulers } = this.scheduling;
    const wallMs = clock.wallMs();
    for (const { name } of schedulers.list(this.nowMs)) {
      const untilMs = state.pauses.get(name) ?? 0;
      if (untilMs > wallMs) schedulers.pause(name, this.nowMs + untilMs - wallMs);
      else schedulers.resume(name);
    }
  }

  /** CC1. */
  #isInformed(): boolean {
    const { reports, state } = this.#deps;
    if (reports.leadingMs(this.nowMs) >= INFORMED_WITHIN_MS) return true;
    const missing = this.#dataNodes().some(
      ({ nodeId }) => !state.isRemoved(nodeId) && reports.last(nodeId) === undefined,
    );
    return !missing && this.scheduling.model.rangeCount === state.ranges().length;
  }
}

function later(rangeId: number, why: string): ServiceError {
  return new ServiceError('UNAVAILABLE', `range ${rangeId} is not split now: ${why}`);
}
