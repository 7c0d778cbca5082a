/** All schedulers, in the order in which they run; lists, pauses and resumes them. */
import { kebabName, ServiceError } from '@remora/base';
import type { Plan } from '../operator.ts';
import type { SchedulingView } from '../view.ts';
import { leaderCount } from './leader-count.ts';
import { leaderLoad } from './leader-load.ts';
import { Merge } from './merge.ts';
import { MetricScheduler } from './metric-scheduler.ts';
import { BYTES, REPLICA_LOAD, REPLICAS } from './metrics.ts';
import { Scatter } from './scatter.ts';
import type { Scheduler } from './scheduler.ts';
import { Space } from './space.ts';

export interface SchedulerStatus {
  readonly name: string;
  readonly desc: string;
  /** On the master's monotonic clock; undefined if it is not paused. */
  readonly pausedUntilMs: number | undefined;
  /** The result of its last run: why it proposed no more. */
  readonly last: string;
  /** The names of the cluster settings that it uses. */
  readonly settings: readonly string[];
}

interface Slot {
  readonly scheduler: Scheduler;
  pausedUntilMs: number | undefined;
  last: string;
}

export type Admit = (plans: readonly Plan[]) => boolean;

export class SchedulerSet {
  readonly scatter = new Scatter();
  readonly #scatter = slotsFor([this.scatter]);
  readonly #replicas = slotsFor([new Space(), replicaCount(), bytes(), replicaLoad()]);
  readonly #leaders = slotsFor([leaderCount, leaderLoad]);
  readonly #merges = slotsFor([new Merge()]);

  /**
   * Runs one round of each scheduler. `repairsWait`: ranges whose repair waits for a limit; while there are any,
   * replicas are not moved.
   */
  run(view: SchedulingView, admit: Admit, repairsWait: number): void {
    runChain(this.#scatter, view, admit);
    const chains = { replicas: this.#replicas, leaders: this.#leaders, merges: this.#merges };
    runBalance(chains, { view, admit, scattering: this.scatter.waiting, repairsWait });
  }

  /**
   * Like `run` for the balancing schedulers, as a dry run: their proposals go to `admit`, and their explanations are
   * returned. Groups that are being scattered are left alone.
   */
  rehearse(view: SchedulingView, admit: Admit, repairsWait: number): ReadonlyMap<string, string> {
    const [replicas, leaders, merges] = [copied(this.#replicas), copied(this.#leaders), copied(this.#merges)];
    runBalance({ replicas, leaders, merges }, { view, admit, scattering: this.scatter.waiting, repairsWait });
    return new Map(
      [...this.#scatter, ...merges, ...replicas, ...leaders].map(({ scheduler, last }) => [scheduler.name, last]),
    );
  }

  list(nowMs: number): readonly SchedulerStatus[] {
    return this.#slots().map(({ scheduler: { name, desc, settings }, pausedUntilMs, last }) => {
      const paused = pausedUntilMs !== undefined && nowMs < pausedUntilMs;
      const names = settings.map(kebabName);
      return {
        name,
        desc,
        last: paused ? 'paused' : last,
        pausedUntilMs: paused ? pausedUntilMs : undefined,
        settings: names,
      };
    });
  }

  /** Throws `INVALID_ARGUMENT` for an unknown name. Operators that it has started continue. */
  pause(name: string, untilMs: number): void {
    this.#slot(name).pausedUntilMs = untilMs;
  }

  resume(name: string): void {
    this.#slot(name).pausedUntilMs = undefined;
  }

  #slot(name: string): Slot {
    const slot = this.#slots().find(({ scheduler }) => scheduler.name === name);
    if (slot !== undefined) return slot;
    const names = this.#slots().map(({ scheduler }) => scheduler.name);
    throw new ServiceError('INVALID_ARGUMENT', `unknown scheduler "${name}"; the schedulers are ${names.join(', ')}`);
  }

  #slots(): readonly Slot[] {
    return [...this.#scatter, ...this.#merges, ...this.#replicas, ...this.#leaders];
  }
}

interface Round {
  readonly view: SchedulingView;
  readonly admit: Admit;
  /** There are groups that are not spread yet. */
  readonly scattering: boolean;
  readonly repairsWait: number;
}

interface Chains {
  /**
   * Schedulers that move replicas, and those that move leaders. In each list, a scheduler rests while those before it
   * still find work.
   */
  readonly replicas: readonly Slot[];
  readonly leaders: readonly Slot[];
  /** Schedulers that merge ranges. */
  readonly merges: readonly Slot[];
}

function runBalance({ replicas, leaders, merges }: Chains, { view, admit, scattering, repairsWait }: Round): void {
  if (scattering) return rest([...replicas, ...leaders, ...merges], 'waiting for the end of a scatter');
  if (repairsWait === 0) {
    runChain(merges, view, admit);
    runChain(replicas, view, admit);
  } else rest([...merges, ...replicas], `waiting for repairs: ${repairsWait} ranges need one`);
  runChain(leaders, view, admit);
}

function copied(slots: readonly Slot[]): readonly Slot[] {
  return slots.map((slot) => ({ ...slot, scheduler: slot.scheduler.copy?.() ?? slot.scheduler }));
}

function slotsFor(schedulers: readonly Scheduler[]): readonly Slot[] {
  return schedulers.map((scheduler) => ({ scheduler, pausedUntilMs: undefined, last: 'has not run yet' }));
}

function rest(slots: readonly Slot[], why: string): void {
  for (const slot of slots) slot.last = why;
}

function runChain(chain: readonly Slot[], view: SchedulingView, admit: Admit): void {
  let working: string | undefined;
  for (const slot of chain) {
    if (slot.pausedUntilMs !== undefined && view.nowMs < slot.pausedUntilMs) continue;
    if (working !== undefined) slot.last = `waiting while ${working} finds work`;
    else if (runOne(slot, view, admit)) working = slot.scheduler.name;
  }
}

/** Returns whether it had anything to propose. */
function runOne(slot: Slot, view: SchedulingView, admit: Admit): boolean {
  const proposals = slot.scheduler.propose(view);
  let proposed = false;
  let next = proposals.next();
  while (!next.done) {
    proposed = true;
    next = proposals.next(admit(next.value));
  }
  slot.last = next.value;
  return proposed;
}

function replicaCount(): Scheduler {
  const desc = 'balances the number of replicas per node';
  return new MetricScheduler({
    name: 'replica-count',
    desc,
    settings: ['countTolerancePercent'],
    metric: REPLICAS,
    keep: [],
    prefer: [BYTES, REPLICA_LOAD],
  });
}

function bytes(): Scheduler {
  const desc = 'balances stored bytes per node';
  return new MetricScheduler({
    name: 'bytes',
    desc,
    settings: ['bytesTolerancePercent', 'bytesGapMin'],
    metric: BYTES,
    keep: [REPLICAS],
    prefer: [],
  });
}

function replicaLoad(): Scheduler {
  const desc = 'balances requests per node by moving replicas';
  return new MetricScheduler({
    name: 'replica-load',
    desc,
    settings: ['loadTolerancePercent', 'loadGapMin'],
    metric: REPLICA_LOAD,
    keep: [REPLICAS, BYTES],
    prefer: [],
  });
}
