import { ServiceError } from '@remora/base';

/** The progress of something: over, with the result, or running, with a description. */
export type Progress<T> = { readonly over: T } | { readonly line: string };

export interface Follower {
  /** Called each time that there is something new to print. */
  readonly say: (line: string) => void;
  /** Pauses between two looks. */
  readonly pause: () => Promise<void>;
  /** Aborted when the person stops watching. */
  readonly signal: AbortSignal;
}

/** Successive looks that may fail: masters change, nodes restart. */
const MISSES_MAX = 10;

/**
 * Looks repeatedly until something is over; undefined if the person has stopped watching.
 * @throws ServiceError if the cluster does not answer for long.
 */
export async function follow<T>(look: () => Promise<Progress<T>>, follower: Follower): Promise<T | undefined> {
  let said = '';
  let misses = 0;
  const say = (line: string) => {
    if (line !== said) follower.say(line);
    said = line;
  };
  while (!follower.signal.aborted) {
    try {
      const progress = await look();
      if ('over' in progress) return progress.over;
      misses = 0;
      say(progress.line);
    } catch (error) {
      if (!(error instanceof ServiceError) || ++misses === MISSES_MAX) throw error;
      say(`no answer, retrying: ${error.message}`);
    }
    await follower.pause();
  }
  return undefined;
}
