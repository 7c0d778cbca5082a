/**
 * Which callers may use which methods over a link.
 *
 * A1. Only calls inside this process are `local`. The local channel makes that caller; no byte from outside can.
 * A2. A link's caller is a `node` only if its id is above 0, the masters have named it, and it presented the
 *     incarnation that they have (cli/src/node/cluster/peer-identities.ts). Everyone else at a peer port is a `joiner`.
 * A3. Every method says who may call it; the field is required, so a new method does not compile without it.
 * A4. A link serves a caller as a node only as long as it is one: when the masters have removed it, or name its id with
 *     another incarnation, the next frame of the caller ends the link with its calls and streams.
 */
import { type CertificateNames, ServiceError, unreachable } from '@remora/base';

/**
 * Who is asking, as far as a caller has identified itself. Undefined where a caller has not. Never taken from anything
 * that a proxy may set.
 */
export interface Principal {
  /** The name of a user, who may not exist; undefined: the caller has not logged in. */
  readonly name: string | undefined;
  /** `token`: from a log-in with a password, over whichever door. `certificate`: the verified one of the connection. */
  readonly method: 'password' | 'token' | 'certificate' | 'none';
  /** The version that the user had at the log-in (`User`). Absent for a certificate, which is bound to no password. */
  readonly version?: number;
  /** From where it asks. */
  readonly door?: Door | undefined;
  /** Without the port. */
  readonly address?: string | undefined;
}

/** The protocol by which a client asks. */
export type Door = 'pipe' | 'grpc' | 'http';

/** One connection of a client at the client port. */
export interface ClientConnection {
  /** The name of its verified certificate. */
  readonly certificateName: string | undefined;
  readonly door: Door;
  /** Its address, without the port. */
  readonly address: string;
  /** The token of its latest log-in. */
  token: string | undefined;
}

export type Caller =
  | { readonly kind: 'local' }
  | { readonly kind: 'node'; readonly nodeId: number }
  /**
   * `claims`: the node id that it presented without proof; 0 if none, or one that it may not register. `certificate`:
   * it may register no other name than that of its certificate, if it has one.
   */
  | { readonly kind: 'joiner'; readonly claims: number; readonly certificate?: CertificateNames | undefined }
  /** At the client port. */
  | { readonly kind: 'client'; readonly connection: ClientConnection };

/** The callers of a method outside this process. `joiners` includes nodes. */
export type Callers = 'clients' | 'nodes' | 'joiners';

export const LOCAL_CALLER: Caller = { kind: 'local' };
/** A caller that presented nothing. */
export const ANONYMOUS_CALLER = { kind: 'joiner', claims: 0 } as const satisfies Caller;

export function mayCall(caller: Caller, callers: Callers): boolean {
  switch (caller.kind) {
    case 'local':
      return true;
    case 'node':
      return callers !== 'clients';
    case 'joiner':
      return callers === 'joiners';
    case 'client':
      return callers === 'clients';
    default:
      return unreachable(caller);
  }
}

/** Why `caller` may not call `method`. A node that is not known here yet joins again, or asks again after a moment. */
export function accessRefusal(caller: Caller, method: string): ServiceError {
  if (caller.kind === 'joiner' && caller.claims > 0) {
    const message = `${method} is refused to node ${caller.claims}: the masters have not named it to this node yet`;
    return new ServiceError('UNAVAILABLE', message, { details: { join: true } });
  }
  return new ServiceError('UNIMPLEMENTED', `${method} is not served to this caller`);
}
