/**
 * Looks at whether a node beyond loopback belongs to a cluster that has no authentication.
 *
 * EX1. A node that joins such a cluster stops, unless `--insecure anonymous` allows it. It learns this only from the
 *      masters. For founders, their options tell before the start.
 * EX2. A node that has been in its cluster before goes on: that somebody has switched authentication off must not end
 *      a cluster. It reports a condition, and logs each change.
 */
import type { KnownAuth } from '@remora/auth';
import { type Address, formatAddress, type Logger } from '@remora/base';
import { type HealthCondition, healthCondition } from '@remora/protocol';
import { CommandError } from '../../exit-codes.ts';
import { exposedAddress } from '../../exposure.ts';
import type { NodeOptions } from '../../node-options.ts';

export interface ExposureCheckDeps {
  readonly options: Pick<NodeOptions, 'clientListen' | 'httpListen' | 'insecure' | 'join' | 'name'>;
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
    if (exposedAddress(deps.options) !== undefined) deps.known.onChange(() => this.#learned());
  }

  /** EX2. */
  *conditions(nodeId: number): Generator<HealthCondition> {
    const { name, insecure } = this.#deps.options;
    const exposed = exposedAddress(this.#deps.options);
    if (exposed === undefined || !this.#isOpen()) return;
    const open = `authentication is off, and node ${name} listens on ${formatAddress(exposed)}: everybody who reaches it administers the cluster`;
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
    const exposed = exposedAddress(options);
    if (exposed !== undefined && isFirst && isNew && options.join.length > 0 && known.isOff && !isIntended) {
      onRefused(new CommandError('usage', openCluster(exposed))); // EX1
    }
    this.look();
  }

  /** Called when the cluster may have been founded. */
  look(): void {
    const { options, logger } = this.#deps;
    const exposed = exposedAddress(options);
    const isOpen = exposed !== undefined && this.#isOpen();
    if (isOpen === this.#wasOpen) return;
    this.#wasOpen = isOpen;
    if (exposed === undefined || !isOpen) return;
    const advice = 'add a user root with the role root, and switch authentication on: etcdctl auth enable';
    logger.warn({ address: formatAddress(exposed), advice }, 'authentication is off: every client may do everything');
  }
}

function openCluster(exposed: Address): string {
  return (
    `authentication is off in the cluster that this node joins, and it listens on ${formatAddress(exposed)}: every ` +
    'client of this node could do everything. Switch authentication on (etcdctl auth enable), listen on 127.0.0.1, or serve ' +
    'everybody by --insecure anonymous'
  );
}
