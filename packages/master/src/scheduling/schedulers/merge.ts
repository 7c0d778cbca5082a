/**
 * Merges adjacent ranges that are small and have little load.
 *
 * MN1. Ranges that would be split again are not merged. Two adjacent ranges fit together only if their total size is
 *      below `bytesMax` (at most half of the split size), if it would stay below the split size for the quiet time even
 *      if all data being written stayed, and if their total load is below half of the load at which a range is split.
 *      So under an unchanged load the merged range is not split within the quiet time, neither for its size nor for its
 *      load.
 * MN2. Ranges that were split are not merged soon. The two must fit for the whole quiet time without a break, at
 *      unchanged versions: a split or a merge restarts it. A range that was split for its load or size does not fit
 *      while that lasts.
 * MN3. The sizes known here are those of the current plain keys. Splits also count older versions, and so does the
 *      leader that receives the merge instruction: it refuses more than `bytesMax` (merge-driver.ts MD4).
 * MN4. A border that people chose stays (range-registry.ts RR6), unless a setting allows its removal.
 * MN5. Adjacent ranges on different nodes are first moved together: the smaller one moves to the nodes of the larger
 *      one, unless its own nodes are further apart; then the larger one moves. Balancing does not touch either of them
 *      until they are merged, because they were moved recently.
 * MN6. A failed attempt is repeated after the quiet time, then after twice the quiet time, and so on.
 */
import type { RangeInfo } from '../cluster-model.ts';
import { replicaOn, voterNodes } from '../cluster-model.ts';
import { isolationCost } from '../labels.ts';
import type { Plan } from '../operator.ts';
import { unfitFor } from '../placement.ts';
import { planFor, relocateSteps } from '../plans.ts';
import type { MergePolicy } from '../settings.ts';
import { notServing } from '../step.ts';
import type { SchedulingView } from '../view.ts';
import { type Proposals, REFUSALS_MAX, type Scheduler } from './scheduler.ts';

/** Two adjacent ranges: the merge ends the second one. */
interface Pair {
  readonly target: RangeInfo;
  readonly source: RangeInfo;
}

/** The state of a pair that fits, by the source's id. */
interface Watched {
  readonly targetId: number;
  readonly targetVersion: number;
  readonly sourceVersion: number;
  readonly sinceMs: number;
  /** MN6. */
  tries: number;
  nextMoveMs: number;
  nextMergeMs: number;
}

const LOAD_SHARE_MAX = 0.5;
const TRIED_AGAIN_AFTER_MAX_MS = 24 * 3_600_000;

export class Merge implements Scheduler {
  readonly name = 'merge';
  readonly desc = 'merges adjacent ranges that are small and quiet, and moves their replicas together first';
  readonly settings = [
    'autoMerge',
    'mergeSizePercent',
    'mergeQuietTime',
    'mergeChosenBorders',
    'mergesUnderWayMax',
  ] as const;
  #watched = new Map<number, Watched>();
  /** What it looked at last: nothing else decides which pairs are watched. */
  #looked: { readonly version: number; readonly merging: MergePolicy } | undefined;

  copy(): Merge {
    const copy = new Merge();
    copy.#watched = new Map([...this.#watched].map(([sourceId, watched]) => [sourceId, { ...watched }]));
    return copy;
  }

  *propose(view: SchedulingView): Proposals {
    const { merging } = view.settings;
    if (!merging.enabled) return 'off: the setting "auto-merge" is false';
    this.#look(view);
    let [waiting, refusals, hindrance] = [0, 0, ''];
    for (const [sourceId, watched] of this.#watched) {
      if (view.nowMs - watched.sinceMs < merging.quietMs) waiting++;
      else {
        const plan = planOf(view, pairOf(view, sourceId, watched), watched);
        if (typeof plan === 'string') hindrance ||= plan;
        else if (yield [plan]) this.#tried(watched, plan, view);
        else if (++refusals === REFUSALS_MAX) return 'more merges will follow: limits are reached';
      }
    }
    if (hindrance !== '') return `adjacent ranges cannot be merged: ${hindrance}`;
    if (waiting > 0) return `${waiting} pairs of adjacent ranges are small, but not quiet for long enough yet`;
    return 'no adjacent ranges are small and quiet';
  }

  /** MN2. */
  #look(view: SchedulingView): void {
    const { model, settings, nowMs } = view;
    const { merging } = settings;
    if (this.#looked?.version === model.version && this.#looked.merging === merging) return;
    this.#looked = { version: model.version, merging };
    const watched = new Map<number, Watched>();
    for (const rangeId of model.idsInKeyOrder()) {
      const target = model.range(rangeId);
      if (target === undefined || target.bytes >= settings.merging.bytesMax) continue; // MN1; true for most ranges
      const source = model.neighbour(rangeId);
      if (source === undefined || mergeObstacle({ target, source }, settings.merging) !== undefined) continue;
      const sourceId = source.descriptor.rangeId;
      const [targetVersion, sourceVersion] = [target.descriptor.epoch.version, source.descriptor.epoch.version];
      const before = this.#watched.get(sourceId);
      const goesOn =
        before?.targetId === rangeId &&
        before.targetVersion === targetVersion &&
        before.sourceVersion === sourceVersion;
      const begun = { sinceMs: nowMs, tries: 0, nextMoveMs: 0, nextMergeMs: 0 };
      watched.set(sourceId, goesOn ? before : { targetId: rangeId, targetVersion, sourceVersion, ...begun });
    }
    this.#watched = watched;
  }

  /** MN6. */
  #tried(watched: Watched, { steps }: Plan, { settings, nowMs }: SchedulingView): void {
    const afterMs = Math.min(TRIED_AGAIN_AFTER_MAX_MS, settings.merging.quietMs * 2 ** watched.tries++);
    if (steps[0]?.type === 'merge') watched.nextMergeMs = nowMs + afterMs;
    else watched.nextMoveMs = nowMs + afterMs;
  }
}

function pairOf(view: SchedulingView, sourceId: number, { targetId }: Watched): Pair | undefined {
  const [target, source] = [view.model.range(targetId), view.model.range(sourceId)];
  return target && source && { target, source };
}

/** MN1, MN4: why two adjacent ranges may not be merged as they are, for people; undefined if they fit. */
export function mergeObstacle({ target, source }: Pair, merging: MergePolicy): string | undefined {
  if (source.chosen && !merging.chosenBorders) return 'the border between them was chosen manually';
  const { splits, bytesMax, quietMs } = merging;
  const sum = (of: (range: RangeInfo) => number): number => of(target) + of(source);
  const bytes = sum((range) => range.bytes);
  if (bytes >= bytesMax) return `together they have ${bytes} bytes; merging requires fewer than ${bytesMax}`;
  const grown = bytes + (sum(({ writeBytesPerS }) => writeBytesPerS) * quietMs) / 1_000;
  if (grown >= splits.bytes) return 'together they grow so fast that they would soon be split again';
  const requests = sum(({ readsPerS, writesPerS }) => readsPerS + writesPerS);
  const asked = sum(({ readBytesPerS, writeBytesPerS }) => readBytesPerS + writeBytesPerS);
  const hot = [
    { load: requests, limit: splits.requestsPerS },
    { load: asked, limit: splits.bytesPerS },
  ].some(({ load, limit }) => limit > 0 && load >= LOAD_SHARE_MAX * limit);
  return hot ? 'together they have at least half of the load at which a range is split' : undefined;
}

/** The plan for a pair that was quiet for long enough, or the reason why there is none now. */
function planOf(view: SchedulingView, pair: Pair | undefined, { nextMoveMs, nextMergeMs }: Watched): Plan | string {
  if (pair === undefined) return 'one of them has ended';
  const { target, source } = pair;
  for (const range of [target, source]) {
    const unable = view.notChangeable(range) ?? view.notWhole(range);
    if (unable !== undefined) return `of range ${range.descriptor.rangeId}: ${unable}`;
    const away = voterNodes(range).find((nodeId) => notServing(view.model, nodeId) !== undefined);
    if (away !== undefined) return `of range ${range.descriptor.rangeId}: node ${away} ${notServing(view.model, away)}`;
  }
  const together = voterNodes(source).every((nodeId) => replicaOn(target, nodeId) !== undefined);
  if (view.nowMs < (together ? nextMergeMs : nextMoveMs)) return 'a recent attempt failed; it is retried later';
  return together ? mergePlan(view, pair) : movePlan(view, pair);
}

function mergePlan({ settings }: SchedulingView, { target, source }: Pair): Plan {
  const { rangeId } = source.descriptor;
  const { version } = target.descriptor.epoch;
  const step = { type: 'merge', source: rangeId, version, bytesMax: settings.merging.bytesMax } as const;
  const reason = `it and the next range, ${rangeId}, are small and quiet`;
  return { ...planFor(target, { kind: 'merge', steps: [step], reason }), partner: rangeId };
}

/** MN5. */
function movePlan(view: SchedulingView, { target, source }: Pair): Plan | string {
  const { model, settings } = view;
  const [smaller, larger] = source.bytes <= target.bytes ? [source, target] : [target, source];
  const cost = (range: RangeInfo): number => isolationCost(model, voterNodes(range), settings.isolationLevels);
  const [goes, stays] = cost(larger) <= cost(smaller) ? [smaller, larger] : [larger, smaller];
  const { leader } = stays;
  const voters = voterNodes(stays);
  const rangeId = goes.descriptor.rangeId;
  for (const nodeId of voters) {
    const unfit = replicaOn(goes, nodeId) === undefined ? unfitFor(view, goes, nodeId, 'merge') : undefined;
    if (unfit !== undefined) return `of range ${rangeId}: node ${nodeId} ${unfit}`;
  }
  if (leader === undefined) return `of range ${stays.descriptor.rangeId}: it has no leader`;
  const steps = relocateSteps(view, goes, { voters, leader });
  const reason = `it moves to the nodes of range ${stays.descriptor.rangeId}, to be merged with it`;
  return { ...planFor(goes, { kind: 'merge', steps, reason }), partner: stays.descriptor.rangeId };
}
