import { ServiceError } from '@remora/base';

/** How far something is: over, with what came of it, or under way, in words. */
export type Progress<T> = { readonly over: T } | { readonly line: string };

export interface Follower {
  /** Told each time that there is something new to say. */
  readonly say: (line: string) => void;
  /** Between two looks. */
  readonly pause: () => Promise<void>;
  /** The person looks on no more. */
  readonly signal: AbortSignal;
}

/** Looks in a row that may fail: masters change, nodes restart. */
const MISSES_MAX = 10;

/**
 * Looks again and again until something is over; undefined when the person has stopped looking.
 * @throws ServiceError when the cluster does not answer for long.
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
