/**
 * SIGHUP: a running node takes over what may change, and names the options that wait for a restart.
 *
 * OR1. A log level that somebody has set in the meantime (`remora admin log-level`) stays, unless the options have
 *      another one than when they were last read.
 * OR2. Options that cannot be read change nothing. Files of certificates and logs are read again all the same.
 */
import { kebabName } from '@remora/base';
import type { LevelledLogger } from '@remora/base/node';
import type { RunningNode } from '../node/running-node.ts';
import { type NodeOptions, nodeSchema } from '../node-options.ts';

/** Options that change in a running process. */
const RELOADED: ReadonlySet<string> = new Set(['logLevel', 'initialCluster', 'peerProxies']);

export class OptionReloads {
  readonly #started: NodeOptions;
  readonly #read: () => NodeOptions;
  readonly #logger: LevelledLogger;
  #last: NodeOptions;

  /** `started`: the options with which the process has started; `read` reads them again. */
  constructor(started: NodeOptions, read: () => NodeOptions, logger: LevelledLogger) {
    this.#started = started;
    this.#last = started;
    this.#read = read;
    this.#logger = logger;
  }

  reload(node: Pick<RunningNode, 'reload'> | undefined): void {
    const before = this.#last;
    const options = this.#current();
    this.#last = options;
    if (options.logLevel !== before.logLevel) this.#logger.level = options.logLevel; // OR1
    this.#logger.info({ logLevel: this.#logger.level }, 'SIGHUP: reading files and options again');
    const differing = Object.keys(nodeSchema.definitions).filter((option) => !isSame(option, this.#started, options));
    const waiting = differing.filter((option) => !RELOADED.has(option)).map((option) => `--${kebabName(option)}`);
    if (waiting.length > 0) {
      this.#logger.warn({ options: waiting }, 'these options have changed; restart the node to use them');
    }
    void node?.reload(options);
  }

  /** OR2. */
  #current(): NodeOptions {
    try {
      return this.#read();
    } catch (error) {
      this.#logger.error({ error: String(error) }, 'the options cannot be read again, and stay as they are');
      return this.#last;
    }
  }
}

function isSame(option: string, before: NodeOptions, now: NodeOptions): boolean {
  const key = option as keyof NodeOptions;
  return JSON.stringify(before[key]) === JSON.stringify(now[key]);
}
