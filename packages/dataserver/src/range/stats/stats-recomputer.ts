import { type Clock, type Engine, type Logger, ServiceError } from '@remora/base';
import type { ReplicaContext } from '../replica-context.ts';
import type { CommandQueue } from '../requests/command-queue.ts';
import { countLive } from './size-sampler.ts';

interface StatsRecomputerDeps {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly context: Pick<ReplicaContext, 'state' | 'servingTerm'>;
  readonly commands: Pick<CommandQueue, 'proposeAlone'>;
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
    if (this.#running || this.#deps.context.state.estimatedSince === 0) return;
    this.#running = true;
    this.#count()
      .catch((error: unknown) => {
        const { logger, context } = this.#deps;
        logger.info({ range: context.state.rangeId, reason: String(error) }, 'the keys of the range were not counted');
      })
      .finally(() => {
        this.#running = false;
      });
  }

  async #count(): Promise<void> {
    const { engine, clock, context, commands } = this.#deps;
    const { state, servingTerm: begun } = context;
    const { descriptor, applied, keys, bytes } = state;
    const { version } = descriptor.epoch;
    const stopped = () => context.servingTerm !== begun || state.descriptor.epoch.version !== version;
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
