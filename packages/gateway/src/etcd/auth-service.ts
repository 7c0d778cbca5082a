import { ServiceError } from '@remora/base';
import type * as pb from '@remora/protocol/etcd';
import type { CallDone, CallInfo } from '../calls.ts';
import type { Headers } from './headers.ts';

/** `etcdserverpb.Auth` of a cluster whose authentication is off: it has no users and no roles. */
export class EtcdAuth {
  readonly #headers: Headers;

  constructor(headers: Headers) {
    this.#headers = headers;
  }

  authStatus(_request: pb.AuthStatusRequest, { seen }: CallInfo, done: CallDone<pb.AuthStatusResponse>): undefined {
    done(undefined, { header: this.#headers.latest(seen), enabled: false, authRevision: 0n });
  }

  /** Succeeds although authentication is off, as in etcd. */
  authDisable(_request: pb.AuthDisableRequest, { seen }: CallInfo, done: CallDone<pb.AuthDisableResponse>): undefined {
    done(undefined, { header: this.#headers.latest(seen) });
  }

  userList(_request: pb.AuthUserListRequest, { seen }: CallInfo, done: CallDone<pb.AuthUserListResponse>): undefined {
    done(undefined, { header: this.#headers.latest(seen), users: [] });
  }

  roleList(_request: pb.AuthRoleListRequest, { seen }: CallInfo, done: CallDone<pb.AuthRoleListResponse>): undefined {
    done(undefined, { header: this.#headers.latest(seen), roles: [] });
  }

  authenticate(): never {
    throw new ServiceError('INVALID_ARGUMENT', 'authentication is not enabled', {
      details: { etcd: 'authNotEnabled' },
    });
  }
}
