import { count, timeOfDay } from './format.ts';

interface Version {
  readonly modRevision: number;
}

/** A key as it was loaded, at `atMs`. `found` undefined: it did not exist. */
interface LoadedKey {
  readonly found: Version | undefined;
  readonly atMs: number;
}

/** What has happened to a key since it was loaded. Undefined: nothing. */
export function changeText({ found, atMs }: LoadedKey, present: Version | undefined): string | undefined {
  if (found?.modRevision === present?.modRevision) return undefined;
  const since = `since you loaded it at ${timeOfDay(atMs)}`;
  if (present === undefined) return `The key was deleted ${since}.`;
  const what = found === undefined ? 'was created' : 'has changed';
  return `The key ${what} ${since}: it is at revision ${count(present.modRevision)} now.`;
}
