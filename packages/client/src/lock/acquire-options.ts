/** What callers of an acquire may ask for. */
import { DEPTH_MAX } from '@remora/lock';
import type { BytesLike } from '../kv/keys.ts';
import type { Duration } from '../options/duration.ts';
import { bytes, callback, count, duration, flag, signal, text } from '../options/option-kinds.ts';
import { type ChecksOf, optionSet } from '../options/options.ts';
import { LEASE_CHECKS, type LeaseOptions } from '../session/dedicated-lease.ts';
import type { RevokeListener } from './revoke.ts';

export interface AcquireOptions extends LeaseOptions {
  /** How long to queue for the lock; without it, as long as it takes. 0: not at all (LOCK_BUSY when it is taken). */
  readonly wait?: Duration | undefined;
  /** Called when somebody asks for the lock: see `HeldLock.onRevoke`. */
  readonly onRevoke?: RevokeListener | undefined;
  /** Gives up when aborted. */
  readonly signal?: AbortSignal | undefined;
  /** Shown with the lock to whoever looks at it, at most 4 KiB. Changed by `setData` while it is held. */
  readonly data?: BytesLike | undefined;
  /**
   * The data stay with the lock when it is held no longer, released or lost, for whoever holds it next (`previousData`),
   * and nobody has to hold it for them to be seen. Without `data` the holder's own begin with what was kept; to leave
   * nothing, set them to nothing before the release. Default: no.
   */
  readonly keepData?: boolean | undefined;
  /**
   * The lock-delay, at most 60 s: when the session ends without this lock's release, nobody else is granted it for so long.
   * For work that cannot present `version` and may go on for a while after its time; a change of leader makes it longer.
   * Default: 0.
   */
  readonly lockDelay?: Duration | undefined;
  /**
   * The owner's token, 1 to 128 bytes. By default each acquire has its own, a GUID. With the token of a lock that
   * this session holds, the acquire is a re-entry, up to `depthMax` deep.
   */
  readonly token?: string | undefined;
  /**
   * How deep the owner may re-enter, by its token or by the handle that the acquire returns (`HeldLock.acquire`); 1 turns
   * re-entry off. Default: 1,000.
   */
  readonly depthMax?: number | undefined;
}

export const WAIT_CHECKS: ChecksOf<Pick<AcquireOptions, 'wait' | 'signal'>> = { wait: duration, signal };
export const ACQUIRE_CHECKS: ChecksOf<AcquireOptions> = {
  ...{ ...WAIT_CHECKS, ...LEASE_CHECKS, data: bytes, keepData: flag, lockDelay: duration },
  ...{ token: text, depthMax: count(1, DEPTH_MAX), onRevoke: callback },
};
export const ACQUIRE_OPTIONS = optionSet<AcquireOptions>('acquire', ACQUIRE_CHECKS);
