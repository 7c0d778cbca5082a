import { nothing } from '../../schema/kinds.ts';
import { AuthRevision, ChangeAuthRequest } from '../auth-api.ts';
import { rareMethod } from './rare-method.ts';

export const masterChangeAuth = rareMethod('master.changeAuth', {
  meaning: 'Changes users and roles; answered with the revision that has the change, when it is replicated.',
  callers: 'nodes',
  request: ChangeAuthRequest,
  reply: AuthRevision,
  changes: () => true,
});

export const masterAwaitAuth = rareMethod('master.awaitAuth', {
  meaning: 'Answered when every live node decides by this revision of users and roles, or a later one.',
  callers: 'nodes',
  request: AuthRevision,
  reply: nothing,
});
