import { type Clock, type Engine, type Logger, ServiceError } from '@remora/base';
import type { RangeState } from '../../state/range-state.ts';
import type { Commands } from '../requests/commands.ts';
import { countLive } from './size-sampler.ts';

export interface StatsRecomputerDeps {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly state: RangeState;
  readonly commands: Pick<Commands, 'proposeAlone'>;
  /** In which this replica serves; 0: it does not. */
  readonly term: () => number;
}

/**
 * Has a leader count the plain keys of its range where their number is in doubt (state/range-stats.ts), and put down by
 * how much it was wrong. It reads all of them, a bounded batch at a time: once for each part of a split.
 */
export class StatsRecomputer {
  readonly #deps: StatsRecomputerDeps;
  #running = false;

  constructor(deps: StatsRecomputerDeps) {
    this.#deps = deps;
  }

  /** Called about every second, on the leader. What comes to nothing is tried again by a later call. */
  tick(): void {
    if (this.#running || this.#deps.state.doubtAt === 0) return;
    this.#running = true;
    this.#count()
      .catch((error: unknown) => {
        const { logger, state } = this.#deps;
        logger.info({ range: state.rangeId, reason: String(error) }, 'the keys of the range were not counted');
      })
      .finally(() => {
        this.#running = false;
      });
  }

  async #count(): Promise<void> {
    const { engine, clock, state, term, commands } = this.#deps;
    const begun = term();
    const { descriptor, applied, keys, bytes } = state;
    const { version } = descriptor.epoch;
    const stopped = () => term() !== begun || state.descriptor.epoch.version !== version;
    const live = await countLive(engine, descriptor, { clock, stopped });
    if (live === undefined || stopped()) return;
    const difference = { keys: live.keys - keys, bytes: live.bytes - bytes };
    const command = { type: 'recount', version, index: applied.index, ...difference } as const;
    await new Promise<void>((resolve, reject) => {
      commands.proposeAlone(command, (error, outcome) => {
        if (outcome?.ok) resolve();
        else
          reject(error ?? new ServiceError('UNAVAILABLE', outcome?.ok === false ? outcome.message : 'it was refused'));
      });
    });
  }
}
