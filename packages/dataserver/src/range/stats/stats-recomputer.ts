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
 * Recomputes the counts of a range's plain keys, on its leader, while they are estimates (state/range-stats.ts), and
 * proposes the difference. It reads all keys, a bounded batch at a time: once for each part of a split.
 */
export class StatsRecomputer {
  readonly #deps: StatsRecomputerDeps;
  #running = false;

  constructor(deps: StatsRecomputerDeps) {
    this.#deps = deps;
  }

  /** Called about every second, on the leader. A later call retries a recomputation that failed. */
  tick(): void {
    if (this.#running || this.#deps.state.estimatedSince === 0) return;
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
