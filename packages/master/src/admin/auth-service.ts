import { checkAuthChange } from '@remora/auth';
import { type Logger, ServiceError } from '@remora/base';
import { type AuthChange, masterAwaitAuth, masterChangeAuth, type RpcRegistry } from '@remora/protocol';
import type { MasterState } from '../metadata/master-state.ts';
import type { AuthRollout } from '../nodes/auth-rollout.ts';
import type { CommandDone } from '../term/proposals.ts';

export interface AuthServiceDeps {
  readonly logger: Logger;
  readonly state: Pick<MasterState, 'auth'>;
  readonly rollout: AuthRollout;
  readonly leading: () => boolean;
  readonly notLeader: () => ServiceError;
  readonly propose: (command: { readonly type: 'changeAuth'; readonly change: AuthChange }, done: CommandDone) => void;
}

/** Serves changes of users and roles. Gateways have decided who may make them. */
export function registerAuth(registry: RpcRegistry, deps: AuthServiceDeps): void {
  const { leading, logger, notLeader, propose, rollout, state } = deps;
  registry.handle(masterChangeAuth, ({ change }, _context, done) => {
    if (!leading()) return done(notLeader(), undefined);
    try {
      checkAuthChange(change, state.auth);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      return done(error, undefined);
    }
    propose({ type: 'changeAuth', change }, (error, result) => {
      if (result?.type !== 'changeAuth') return done(error ?? notLeader(), undefined);
      logger.info({ change: change.type, revision: result.revision }, 'users and roles were changed');
      done(undefined, { revision: result.revision });
    });
  });
  registry.handle(masterAwaitAuth, ({ revision }, context, done) => {
    if (!leading()) return done(notLeader(), undefined);
    context.onCancel(rollout.wait(revision, done));
  });
}
