/** What callers of an acquire may ask for. */
import { DEPTH_MAX } from '@remora/lock';
import type { BytesLike } from '../kv/keys.ts';
import type { Duration } from '../options/duration.ts';
import { bytes, callback, count, duration, flag, signal, text } from '../options/option-kinds.ts';
import { type ChecksOf, optionSet } from '../options/options.ts';
import { LEASE_CHECKS, type LeaseOptions } from '../session/dedicated-lease.ts';
import type { RevokeListener } from './revoke.ts';

export interface AcquireOptions extends LeaseOptions {
  /**
   * How long to wait for the lock (LOCK_TIMEOUT afterwards). 0 does not wait: LOCK_BUSY when the lock is taken.
   * Default: as long as it takes.
   */
  readonly wait?: Duration | undefined;
  /** Called when somebody asks the holder to release the lock: see `HeldLock.onRevoke`. */
  readonly onRevoke?: RevokeListener | undefined;
  /** Gives up the acquire when it aborts (CANCELED). */
  readonly signal?: AbortSignal | undefined;
  /** Shown with the lock to everybody who looks at it, at most 4 KiB. `HeldLock.setData` changes it. Default: none. */
  readonly data?: BytesLike | undefined;
  /**
   * Keep the data with the lock when it is no longer held, whether it was released or lost. The next holder reads them
   * as `previousData`, and everybody can see them meanwhile. A holder without `data` starts with the data that were
   * kept. To leave nothing behind, call `setData('')` before the release. Default false.
   */
  readonly keepData?: boolean | undefined;
  /**
   * The lock-delay, at most 60 s. When the session ends without a release of this lock, nobody else is granted it for
   * this long. Use it for work that cannot pass on `version` and may run on after its session has ended. A change of
   * leader prolongs it. Default 0.
   */
  readonly lockDelay?: Duration | undefined;
  /**
   * The token that identifies the owner within the session, 1 to 128 bytes of UTF-8. With the token of a lock that this
   * session holds, the acquire is a re-entry, up to `depthMax` levels deep. Keep it secret: it lets others release the
   * lock. Default: a new GUID for each acquire.
   */
  readonly token?: string | undefined;
  /**
   * How many levels the owner may hold, counting both acquires with its token and `HeldLock.acquire`. 1 turns re-entry
   * off. At most 1,000,000. Default 1,000.
   */
  readonly depthMax?: number | undefined;
}

export const WAIT_CHECKS: ChecksOf<Pick<AcquireOptions, 'wait' | 'signal'>> = { wait: duration, signal };
export const ACQUIRE_CHECKS: ChecksOf<AcquireOptions> = {
  ...{ ...WAIT_CHECKS, ...LEASE_CHECKS, data: bytes, keepData: flag, lockDelay: duration },
  ...{ token: text, depthMax: count(1, DEPTH_MAX), onRevoke: callback },
};
export const ACQUIRE_OPTIONS = optionSet<AcquireOptions>('acquire', ACQUIRE_CHECKS);
