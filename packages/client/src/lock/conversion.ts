/** Conversions of a hold: upgrades from shared to exclusive, and downgrades back. */
import { EMPTY_BYTES, ServiceError } from '@remora/base';
import type { Owner } from '@remora/lock';
import { durationMs } from '../options/duration.ts';
import { optionSet } from '../options/options.ts';
import type { OwnerTurns } from '../session/owner.ts';
import type { Session } from '../session/session.ts';
import { isLasting } from '../transport/request-errors.ts';
import { AcquireOperation, type AcquireRequest, lockResult } from './acquire.ts';
import { type AcquireOptions, WAIT_CHECKS } from './acquire-options.ts';
import type { LockDeps } from './lock-deps.ts';
import { refusalOf } from './lock-errors.ts';

/** How long to wait for the upgrade, and when to give up. */
export type UpgradeOptions = Pick<AcquireOptions, 'wait' | 'signal'>;

export const UPGRADE_OPTIONS = optionSet<UpgradeOptions>('upgrade', WAIT_CHECKS);

/** What a conversion needs to know of a hold. */
export interface Convertible {
  readonly deps: LockDeps;
  readonly session: Session;
  readonly owner: Owner;
  readonly lock: AcquireRequest['lock'];
  readonly turns: OwnerTurns;
  /** Why the lock is no longer held; undefined while it is. */
  readonly refusal: () => ServiceError | undefined;
  /** Whether it is held exclusively, as far as is known. */
  readonly isAlone: () => boolean;
  /** The cluster says that it is not held. */
  readonly lose: (reason: ServiceError) => void;
  /** It is unknown how the lock is held: releases it, and calls `done` once that release can no longer be applied. */
  readonly abandon: (done: () => void) => void;
}

/** An upgrade enters no level: any value that is not below the present depth will do. */
const DEPTH_MAX = 1_000;

export async function upgradeHold(hold: Convertible, options: UpgradeOptions): Promise<void> {
  const { deps, session, owner, lock } = hold;
  const { requester, nextAttempt, requestTimeoutMs } = deps;
  const waitMs = options.wait === undefined ? undefined : durationMs(options.wait, 'wait');
  const request: AcquireRequest = {
    ...{ lock, token: owner.token, depthMax: DEPTH_MAX, levelsMax: DEPTH_MAX, data: EMPTY_BYTES, requestTimeoutMs },
    ...{ keepData: false, delayMs: 0, attempt: nextAttempt(), startedMs: requester.ports.clock.monotonicMs() },
    ...{ waitMs, signal: options.signal, as: { type: 'upgrade' } },
    upgrade: { refusal: hold.refusal, isAlone: hold.isAlone, onUnknown: hold.abandon },
  };
  requester.ports.liveness.hold();
  try {
    const grant = await new AcquireOperation(requester, session, request).run();
    if (grant === undefined) throw new ServiceError('LOCK_BUSY', 'others share the lock');
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'LOCK_NOT_HELD') hold.lose(error);
    throw error;
  } finally {
    requester.ports.liveness.release();
  }
}

export function downgradeHold(hold: Convertible): Promise<void> {
  const { liveness } = hold.deps.requester.ports;
  liveness.hold();
  return new Promise((resolve, reject) => {
    hold.turns.enter(() => {
      liveness.release(); // The request keeps the process alive from here on.
      const refusal = hold.refusal();
      if (refusal !== undefined) {
        reject(refusal);
        return false;
      }
      shareFromNowOn(hold).then(resolve, reject);
      return true;
    });
  });
}

async function shareFromNowOn({ deps, lock, owner, turns, lose, abandon }: Convertible): Promise<void> {
  const { requester, requestTimeoutMs } = deps;
  const command = { type: 'downgrade', lock, owner, attempt: turns.attempt } as const;
  let leave = (): void => turns.leave();
  turns.converting = true;
  try {
    const result = lockResult(await requester.command({ type: 'lock', command }, { timeoutMs: requestTimeoutMs }));
    if (result.type === 'granted') return turns.converted(result.version, 'shared');
    const error = refusalOf(result);
    if (error.code === 'LOCK_NOT_HELD') lose(error);
    throw error;
  } catch (error) {
    if (error instanceof ServiceError && isLasting(error)) throw error;
    leave = () => abandon(() => turns.leave());
    throw error;
  } finally {
    turns.converting = false;
    leave();
  }
}
