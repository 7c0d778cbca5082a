import { type Bytes, type Clock, type ClusterVersion, EMPTY_BYTES, type Logger, versionText } from '@remora/base';
import type { NodeDescriptor } from '@remora/protocol';
import type { MasterCommand } from '../metadata/master-commands.ts';
import type { MasterState } from '../metadata/master-state.ts';
import type { CommandDone } from '../term/proposals.ts';
import type { Founding } from './founding.ts';

export interface FirstRangeDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly state: MasterState;
  /** The number of nodes that get a replica of it. */
  readonly replicas: number;
  /** The routing keys at which further ranges begin, in order. None: it is the only range. */
  readonly borders: readonly Bytes[];
  readonly isUp: (nodeId: number) => boolean;
  readonly founding: Pick<Founding, 'mayCreateRanges'>;
  /** The version with which the cluster begins (nodes/upgrade.ts UP3). */
  readonly version: () => ClusterVersion;
  readonly propose: (command: MasterCommand, done: CommandDone) => void;
}

/**
 * How long several ranges wait for all founding nodes: if they are spread over them at once, they need not move later.
 */
const FOUNDERS_WAIT_MS = 5_000;

/** Creates the first range or ranges once enough nodes that store data are up. */
export class FirstRange {
  readonly #deps: FirstRangeDeps;
  #creating = false;
  /** Since when there have been enough nodes for one range. */
  #enoughSinceMs: number | undefined;

  constructor(deps: FirstRangeDeps) {
    this.#deps = deps;
  }

  look(): void {
    const { clock, state, replicas, borders, founding } = this.#deps;
    if (this.#creating || state.ranges().length > 0) return;
    const up = this.#nodesUp();
    if (up.length < replicas || !founding.mayCreateRanges()) return;
    if (borders.length === 0) return this.#create({ type: 'bootstrapRange', nodeIds: up.slice(0, replicas) });
    const nowMs = clock.monotonicMs();
    this.#enoughSinceMs ??= nowMs;
    if (nowMs - this.#enoughSinceMs < FOUNDERS_WAIT_MS && this.#isFounderMissing()) return;
    const starts = [EMPTY_BYTES, ...borders];
    // The first of its nodes usually leads a range.
    const ranges = starts.map((start, i) => ({ start, nodeIds: rotated(up, i).slice(0, replicas) }));
    this.#create({ type: 'bootstrapRanges', ranges });
  }

  #nodesUp(): readonly number[] {
    const { state, isUp } = this.#deps;
    const mayHave = ({ nodeId, roles }: NodeDescriptor): boolean =>
      roles.includes('data') && isUp(nodeId) && state.dutyOf(nodeId).duty === 'serving';
    const up = state.nodes().filter(mayHave);
    return up.map(({ nodeId }) => nodeId).sort((a, b) => a - b);
  }

  /** The voters of the master group are the founding nodes. */
  #isFounderMissing(): boolean {
    const { state, isUp } = this.#deps;
    return state.conf.voters.some((nodeId) => state.node(nodeId) === undefined || !isUp(nodeId));
  }

  #create(command: Extract<MasterCommand, { type: 'bootstrapRange' | 'bootstrapRanges' }>): void {
    const { state, logger, propose, version } = this.#deps;
    this.#creating = true;
    this.#raise(version());
    propose(command, (error) => {
      this.#creating = false;
      if (error === undefined) logger.info({ ranges: state.ranges().length }, 'created the first ranges');
      else logger.warn({ error: error.message }, 'could not create the first ranges');
    });
  }

  /** The log of the masters has it before the first ranges. */
  #raise(version: ClusterVersion): void {
    const { state, logger, propose } = this.#deps;
    if (version <= state.clusterVersion) return;
    propose({ type: 'finalizeUpgrade', version }, (error) => {
      if (error === undefined) logger.info({ version: versionText(version) }, 'the cluster begins with this version');
    });
  }
}

function rotated(ids: readonly number[], by: number): readonly number[] {
  const at = by % ids.length;
  return [...ids.slice(at), ...ids.slice(0, at)];
}
