/**
 * Founds a cluster with authentication, or without.
 *
 * FO1. If the leader's plan has authentication, the masters have the user root, and authentication is on, before they
 *      create a range. So no key, lock or session is older than authentication, and no request was served without it.
 * FO2. Founders that were heard and plan otherwise stop the founding: the cluster gets ranges only after all of them
 *      agree. A founder that was not heard does not count; it takes the cluster as it finds it.
 * FO3. Founders agree on the kind of log-in only. Each one hashes the password by itself, so hashes differ, and that of
 *      the leader that proposes is used.
 * FO4. Only a cluster without ranges is founded. Later, options about it have no effect.
 * FO5. Until then nobody changes users and roles. A leader whose plan has authentication tells no node before that
 *      authentication is off, so nodes refuse every request that needs a decision (auth's known-auth.ts KA3).
 */
import type { FirstRoot } from '@remora/auth';
import type { Logger } from '@remora/base';
import type { FoundingKind } from '@remora/protocol';
import type { MasterCommand } from '../metadata/master-commands.ts';
import type { MasterState } from '../metadata/master-state.ts';
import type { CommandDone } from '../term/proposals.ts';

/** How this node would found the cluster. */
export type FoundingPlan =
  | { readonly kind: 'open' }
  /** `root` is absent if the file with the password could not be read on a node that has been in a cluster before. */
  | { readonly kind: Exclude<FoundingKind, 'open'>; readonly root: FirstRoot | undefined };

export interface FoundingDeps {
  readonly logger: Logger;
  readonly state: MasterState;
  readonly plan: FoundingPlan;
  /** What a node reported of its own plan; undefined if it was not heard, or has none. */
  readonly planOf: (nodeId: number) => FoundingKind | undefined;
  readonly propose: (command: MasterCommand, done: CommandDone) => void;
}

const TEXTS: Readonly<Record<FoundingKind, string>> = {
  open: 'without authentication',
  password: 'with --initial-root-password-file',
  certificate: 'with authentication by client certificates',
};

export class Founding {
  readonly #deps: FoundingDeps;
  #proposing = false;
  /** Why the cluster is not founded yet. Logged when it changes. */
  #obstacle = '';

  constructor(deps: FoundingDeps) {
    this.#deps = deps;
  }

  /** Whether ranges may be created now (FO1, FO2). If not, it does what is missing. Only for a leader. */
  mayCreateRanges(): boolean {
    const { state, plan } = this.#deps;
    if (this.#isStopped(this.#disagreement())) return false;
    if (plan.kind === 'open' || state.auth.enabled) return true;
    if (plan.root !== undefined) this.#found(plan.root);
    else this.#isStopped('the file of --initial-root-password-file cannot be read');
    return false;
  }

  /** Whether nodes may learn of users and roles, or that there are none (FO5). */
  get isAuthTold(): boolean {
    const { state, plan } = this.#deps;
    return plan.kind === 'open' || state.auth.enabled || state.ranges().length > 0;
  }

  /** FO2. The founders are the voters of the masters' group. */
  #disagreement(): string {
    const { state, plan, planOf } = this.#deps;
    for (const nodeId of state.conf.voters) {
      const other = planOf(nodeId);
      if (other === undefined || other === plan.kind) continue;
      const name = state.node(nodeId)?.name ?? nodeId;
      return `this node founds it ${TEXTS[plan.kind]}, and node ${name} ${TEXTS[other]}; start all founders with the same options`;
    }
    return '';
  }

  #isStopped(obstacle: string): boolean {
    if (obstacle !== '' && obstacle !== this.#obstacle) {
      this.#deps.logger.warn({ why: obstacle }, 'the cluster is not founded yet');
    }
    this.#obstacle = obstacle;
    return obstacle !== '';
  }

  #found(root: FirstRoot): void {
    const { logger, propose } = this.#deps;
    if (this.#proposing) return;
    this.#proposing = true;
    propose({ type: 'foundAuth', ...root }, (error) => {
      this.#proposing = false;
      if (error === undefined) logger.info({}, 'the cluster is founded with authentication; its first user is root');
      else logger.warn({ error: error.message }, 'could not switch authentication on');
    });
  }
}
