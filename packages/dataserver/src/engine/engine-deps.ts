import type { Clock, Logger, Span } from '@remora/base';

export interface EngineOptions {
  /** Key spaces whose rows are all kept in memory. They do not overlap. */
  readonly resident: readonly Span[];
}

export interface EngineDeps {
  readonly options: EngineOptions;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Resolves when everything applied before the call is durable in the log; a checkpoint waits for it (O4). */
  readonly logDurable?: () => Promise<void>;
  /** Called once, with the error that ended the engine: the process should stop (O7). */
  readonly onFailure: (error: Error) => void;
}
