/** The events that listeners received about the round's locks are consistent with one history (`LockStoryCheck`). */
import type { LockWatchEvent } from 'remora';
import { type Finding, LockStoryCheck, type StoryEvent } from '../../checkers/index.ts';
import type { Round } from './evidence.ts';
import { judgeTimed, notesOf, type Timed } from './timed.ts';

interface Noted {
  readonly c: string;
  readonly k: string;
  readonly heard: readonly LockWatchEvent[];
}

export function judgeListeners(round: Round): readonly Finding[] {
  const events = notesOf<Noted>(round, 'listeners').flatMap(({ t, n: { c: listener, k: lock, heard } }) =>
    heard.map((each): Timed<StoryEvent> => {
      const { revision } = each;
      if (each.type === 'state') return { t, event: { type: 'state', listener, lock, revision, state: each.state } };
      return { t, event: { type: 'event', listener, lock, revision, event: each } };
    }),
  );
  return judgeTimed(new LockStoryCheck(), events);
}
