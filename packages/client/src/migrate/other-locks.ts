/** What `remora/migrate` needs of the other system: three calls, none of which waits. */

export interface OtherLocks {
  /**
   * Acquires the lock for `ttlMs` if it is free. Resolves to undefined if it is taken. It must exclude the services
   * that use that system alone, so it has to take the lock as they do. `owner`: a random text, another one for each
   * call.
   */
  tryAcquire(name: string, as: { readonly ttlMs: number; readonly owner: string }): Promise<OtherLock | undefined>;
}

export interface OtherLock {
  /** Holds it for another `ttlMs` from now on. Resolves to false if it is no longer held. */
  renew(): Promise<boolean>;
  /** Releases it if it is still held. */
  release(): Promise<void>;
}
