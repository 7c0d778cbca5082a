import { ServiceError } from '@remora/base';
import type { Done } from '@remora/protocol';
import type { MasterCommand } from '../metadata/master-commands.ts';
import type { MasterState } from '../metadata/master-state.ts';
import type { CommandDone } from '../term/proposals.ts';

export interface StrikeOffDeps {
  readonly state: MasterState;
  readonly isSilent: (nodeId: number) => boolean;
  readonly propose: (command: MasterCommand, done: CommandDone) => void;
}

/**
 * Removes permanently dead nodes, whatever ranges lose by it: that loss has already happened. From then on none of them
 * is accepted again (master-state.ts M9). The removal is idempotent, also when it is requested concurrently.
 *
 * The removal is refused while one of the nodes may be alive: it was heard a moment ago, or this leader of the masters
 * is too new to have heard from it. Often the masters have just elected a leader when nodes are removed.
 */
export function strikeOff(nodeIds: readonly number[], deps: StrikeOffDeps, done: Done<undefined>): void {
  const { state, isSilent, propose } = deps;
  const left = nodeIds.filter((nodeId) => state.node(nodeId) !== undefined && !state.isRemoved(nodeId));
  const alive = left.find((nodeId) => !isSilent(nodeId));
  if (alive !== undefined) {
    const message = `node ${alive} may have been up a moment ago; if it is dead, try again in a few seconds`;
    return done(new ServiceError('UNAVAILABLE', message), undefined);
  }
  const [nodeId, ...others] = left;
  if (nodeId === undefined) return done(undefined, undefined);
  propose({ type: 'setDuty', nodeId, duty: 'removed', untilMs: 0 }, (error) =>
    error === undefined || state.isRemoved(nodeId) ? strikeOff(others, deps, done) : done(error, undefined),
  );
}
