import type { ServiceError } from '@remora/base';
import type { KeyRange, KvEvent } from '@remora/protocol';
import type { Asked, Backend, WatchControl } from '../../backend.ts';

export interface Followed extends KeyRange {
  /** The start revision. */
  readonly from: number;
  readonly noPut?: boolean;
}

/**
 * A function that gets each event and returns true when it needs no more, and the signal that ends the watch otherwise.
 */
export interface Follower {
  readonly signal: AbortSignal;
  readonly enough: (event: KvEvent) => boolean;
  /** Called with the watch, so that it can be paused while events cannot be passed on. */
  readonly onControl?: (control: WatchControl | undefined) => void;
}

/** For whom the keys are watched. */
export interface FollowedBy extends Asked {
  readonly backend: Backend;
}

/**
 * Watches keys until an event was enough. Resolves with undefined, or with the error that ended the watch before; later
 * events are unknown then. @throws the signal's reason when it aborts.
 */
export function follow(
  { backend, principal }: FollowedBy,
  keys: Followed,
  follower: Follower,
): Promise<ServiceError | undefined> {
  const { signal, enough, onControl } = follower;
  const { from: startRevision, noPut = false, ...range } = keys;
  return new Promise((resolve, reject) => {
    let control: WatchControl | undefined;
    let over = false;
    const end = (settle: () => void): void => {
      if (over) return;
      over = true;
      signal.removeEventListener('abort', onAbort);
      control?.cancel();
      onControl?.(undefined);
      settle();
    };
    const onAbort = (): void => end(() => reject(signal.reason));
    if (signal.aborted) return onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    control = backend.watch(
      { ...range, startRevision, noPut, noDelete: false, prevKv: false, principal },
      {
        onCreated: () => {},
        onEvents: (events) => {
          for (const event of events) if (!over && enough(event)) end(() => resolve(undefined));
        },
        onProgress: () => {},
        onEnd: (error) => end(() => resolve(error)),
      },
    );
    if (over) control.cancel();
    else onControl?.(control);
  });
}
