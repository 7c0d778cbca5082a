/**
 * Who is asking, as far as a caller has identified itself. Undefined where a caller has not. Never taken from anything
 * that a proxy may set.
 */
export interface Principal {
  /** The name of a user, who may not exist. */
  readonly name: string;
  /** `token`: from a log-in with a password, over whichever door. `certificate`: the verified one of the connection. */
  readonly method: 'password' | 'token' | 'certificate';
}
