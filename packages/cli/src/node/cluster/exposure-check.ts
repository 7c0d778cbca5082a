/**
 * Looks at whether a node beyond loopback belongs to a cluster that has no authentication.
 *
 * EX1. A node that joins such a cluster stops, unless `--insecure anonymous` allows it. It learns this only from the
 *      masters. For founders, their options tell before the start.
 * EX2. A node that has been in its cluster before goes on: that somebody has switched authentication off must not end
 *      a cluster. It reports a condition, and logs each change.
 */
import type { KnownAuth } from '@remora/auth';
import type { Logger } from '@remora/base';
import { type HealthCondition, healthCondition } from '@remora/protocol';
import { CommandError } from '../../exit-codes.ts';
import { isLoopback } from '../../exposure.ts';
import type { NodeOptions } from '../../node-options.ts';

export interface ExposureCheckDeps {
  readonly options: Pick<NodeOptions, 'listenHost' | 'insecure' | 'join' | 'name'>;
  readonly known: Pick<KnownAuth, 'isOff' | 'onChange'>;
  readonly logger: Pick<Logger, 'warn'>;
  /** Whether this node has never been in a cluster before this life. */
  readonly isNew: boolean;
  /** Whether the cluster has ranges: before that it is being founded, and authentication is on in a moment. */
  readonly isFounded: () => boolean;
  readonly onRefused: (error: CommandError) => void;
}

export class ExposureCheck {
  readonly #deps: ExposureCheckDeps;
  #wasOpen = false;
  #isFirst = true;

  constructor(deps: ExposureCheckDeps) {
    this.#deps = deps;
    if (!isLoopback(deps.options.listenHost)) deps.known.onChange(() => this.#learned());
  }

  /** EX2. */
  *conditions(nodeId: number): Generator<HealthCondition> {
    const { listenHost, name, insecure } = this.#deps.options;
    if (isLoopback(listenHost) || !this.#isOpen()) return;
    const open = `authentication is off, and node ${name} listens on ${listenHost}: everybody who reaches its client port administers the cluster`;
    if (insecure.includes('anonymous')) yield healthCondition('anonymousAllowed', { nodeId }, open);
    else yield healthCondition('authenticationOff', { nodeId }, `${open}; switch it on: etcdctl auth enable`);
  }

  #isOpen(): boolean {
    const { known, isFounded } = this.#deps;
    return known.isOff && isFounded();
  }

  #learned(): void {
    const { options, known, isNew, onRefused } = this.#deps;
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    const isIntended = options.insecure.includes('anonymous');
    if (isFirst && isNew && options.join.length > 0 && known.isOff && !isIntended) {
      onRefused(new CommandError('usage', openCluster(options.listenHost))); // EX1
    }
    this.look();
  }

  /** Called when the cluster may have been founded. */
  look(): void {
    const { options, logger } = this.#deps;
    const isOpen = !isLoopback(options.listenHost) && this.#isOpen();
    if (isOpen === this.#wasOpen) return;
    this.#wasOpen = isOpen;
    if (!isOpen) return;
    const advice = 'add a user root with the role root, and switch authentication on: etcdctl auth enable';
    logger.warn({ listenHost: options.listenHost, advice }, 'authentication is off: every client may do everything');
  }
}

function openCluster(listenHost: string): string {
  return (
    `authentication is off in the cluster that this node joins, and --listen-host is ${listenHost}: every client of ` +
    'this node could do everything. Switch authentication on (etcdctl auth enable), listen on 127.0.0.1, or serve ' +
    'everybody by --insecure anonymous'
  );
}
