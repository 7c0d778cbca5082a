import { ServiceError } from '@remora/base';

/** That a request is allowed, and by which revision of users and roles. It goes with the request to every range. */
export interface Clearance {
  /** 0: the cluster itself asks. */
  readonly revision: number;
  /**
   * Decides about the whole request again, by this revision or a later one, which a leader knows. Calls back once, with
   * the refusal if there is one, after at most `timeoutMs`. Returns a function that gives up.
   */
  again(revision: number, timeoutMs: number, done: (refusal: ServiceError | undefined) => void): () => void;
  /** Set by a request that may wait for long: it ends with the refusal, once its caller may not make it any more. */
  onRefused: ((refusal: ServiceError) => void) | undefined;
}

/** For work of the cluster itself, for which nobody's permission is needed. */
export const CLUSTER: Clearance = {
  revision: 0,
  again(_revision, _timeoutMs, done) {
    done(new ServiceError('INTERNAL', 'a range asked for a permission for work of the cluster itself'));
    return () => {};
  },
  get onRefused(): undefined {
    return undefined;
  },
  set onRefused(_listener) {
    // It is always allowed.
  },
};
