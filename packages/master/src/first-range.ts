import type { Logger } from '@remora/base';
import type { NodeDescriptor } from '@remora/protocol';
import type { CommandDone } from './proposals.ts';
import type { MasterCommand, MasterState } from './state.ts';

export interface FirstRangeDeps {
  readonly logger: Logger;
  readonly state: MasterState;
  /** Nodes that it gets a replica on. */
  readonly replicas: number;
  readonly isUp: (nodeId: number) => boolean;
  readonly propose: (command: MasterCommand, done: CommandDone) => void;
}

/** Creates the first range once enough nodes that store data are up. */
export class FirstRange {
  readonly #deps: FirstRangeDeps;
  #creating = false;

  constructor(deps: FirstRangeDeps) {
    this.#deps = deps;
  }

  look(): void {
    const { state, replicas, isUp, propose, logger } = this.#deps;
    if (this.#creating || state.ranges().length > 0) return;
    const mayHave = ({ nodeId, roles }: NodeDescriptor): boolean =>
      roles.includes('data') && isUp(nodeId) && state.dutyOf(nodeId).duty === 'serving';
    const up = state.nodes().filter(mayHave);
    if (up.length < replicas) return;
    const nodeIds = up
      .map(({ nodeId }) => nodeId)
      .sort((a, b) => a - b)
      .slice(0, replicas);
    this.#creating = true;
    propose({ type: 'bootstrapRange', nodeIds }, (error, result) => {
      this.#creating = false;
      if (result?.type === 'bootstrapRange') {
        logger.info({ range: result.rangeId, nodes: nodeIds }, 'created the first range');
      } else logger.warn({ error: error?.message }, 'could not create the first range');
    });
  }
}
