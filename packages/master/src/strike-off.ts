import { ServiceError } from '@remora/base';
import type { Done } from '@remora/protocol';
import type { MasterCommand } from './master-commands.ts';
import type { CommandDone } from './proposals.ts';
import type { Liveness } from './scheduling/cluster-model.ts';
import type { MasterState } from './state.ts';

export interface StrikeOffDeps {
  readonly state: MasterState;
  readonly stateOf: (nodeId: number) => Liveness;
  readonly propose: (command: MasterCommand, done: CommandDone) => void;
}

/**
 * Nodes that are dead for good are removed, whatever ranges lose by it: that has happened already. From then on none of
 * them is taken back (state.ts M9). Refused while one of them is heard. Done twice is done once.
 */
export function strikeOff(nodeIds: readonly number[], deps: StrikeOffDeps, done: Done<undefined>): void {
  const { state, stateOf, propose } = deps;
  const left = nodeIds.filter((nodeId) => state.node(nodeId) !== undefined && !state.isRemoved(nodeId));
  const alive = left.find((nodeId) => stateOf(nodeId) === 'up');
  if (alive !== undefined) {
    const message = `node ${alive} was heard a moment ago; if it is dead, try again in some seconds`;
    return done(new ServiceError('UNAVAILABLE', message), undefined);
  }
  const [nodeId, ...others] = left;
  if (nodeId === undefined) return done(undefined, undefined);
  propose({ type: 'setDuty', nodeId, duty: 'removed', untilMs: 0 }, (error) =>
    error === undefined ? strikeOff(others, deps, done) : done(error, undefined),
  );
}
