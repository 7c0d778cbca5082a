/** Who asks, and what each of them may get. Every row of the table names all of them. */
import type { World } from './world.ts';

export const PRINCIPALS = [
  /** Has not logged in. */
  'anonymous',
  /** A user without a role. */
  'stranger',
  /** May read keys that begin with `a/`. */
  'reader',
  /** May write them. */
  'writer',
  /** May read and write them. */
  'editor',
  /** May acquire locks of the namespace `default` that begin with `a/`. All sessions in the table are its own. */
  'lockUser',
  /** May steer all locks of all namespaces. */
  'steerer',
  'root',
] as const;
export type Who = (typeof PRINCIPALS)[number];

/**
 * `allowed`: the request passed authorisation, whatever its answer is. `INVALID_ARGUMENT`: no client may send it, so
 * it is refused before authorisation.
 */
export type Verdict = 'allowed' | 'UNAUTHENTICATED' | 'PERMISSION_DENIED' | 'INVALID_ARGUMENT';
export type Verdicts = Readonly<Record<Who, Verdict>>;

export interface Row<Request> {
  /** Tells the rows of one method apart. */
  readonly name?: string;
  readonly may: Verdicts;
  /** Makes a new request for each caller: what one caller ends exists again for the next. */
  readonly request: (world: World, who: Who) => Request | Promise<Request>;
  /** What a request that is in order gets from a node in this state, although it looks like a malformed one. */
  readonly despite?: RegExp;
  /** Undoes what a caller who may has done. */
  readonly after?: (world: World) => Promise<unknown>;
}
export type Rows<Request> = readonly [Row<Request>, ...Row<Request>[]];

const [OK, WHO, NO, NEVER] = ['allowed', 'UNAUTHENTICATED', 'PERMISSION_DENIED', 'INVALID_ARGUMENT'] as const;

export const EVERYBODY: Verdicts = {
  ...{ anonymous: OK, stranger: OK, reader: OK, writer: OK, editor: OK, lockUser: OK, steerer: OK, root: OK },
};
export const ANY_USER: Verdicts = {
  ...{ anonymous: WHO, stranger: OK, reader: OK, writer: OK, editor: OK, lockUser: OK, steerer: OK, root: OK },
};
export const ROOT: Verdicts = {
  ...{ anonymous: WHO, stranger: NO, reader: NO, writer: NO, editor: NO, lockUser: NO, steerer: NO, root: OK },
};
export const KEY_READERS: Verdicts = {
  ...{ anonymous: WHO, stranger: NO, reader: OK, writer: NO, editor: OK, lockUser: NO, steerer: NO, root: OK },
};
export const KEY_WRITERS: Verdicts = {
  ...{ anonymous: WHO, stranger: NO, reader: NO, writer: OK, editor: OK, lockUser: NO, steerer: NO, root: OK },
};
/** What reads and writes. */
export const KEY_EDITORS: Verdicts = {
  ...{ anonymous: WHO, stranger: NO, reader: NO, writer: NO, editor: OK, lockUser: NO, steerer: NO, root: OK },
};
/** What is about one user or role, for that user. */
export const WRITER_ITSELF: Verdicts = {
  ...{ anonymous: WHO, stranger: NO, reader: NO, writer: OK, editor: NO, lockUser: NO, steerer: NO, root: OK },
};
export const LOCK_READERS: Verdicts = {
  ...{ anonymous: WHO, stranger: NO, reader: NO, writer: NO, editor: NO, lockUser: OK, steerer: OK, root: OK },
};
export const STEERERS: Verdicts = {
  ...{ anonymous: WHO, stranger: NO, reader: NO, writer: NO, editor: NO, lockUser: NO, steerer: OK, root: OK },
};
/** What uses the session of the lock user. */
export const LOCK_USER: Verdicts = {
  ...{ anonymous: WHO, stranger: NO, reader: NO, writer: NO, editor: NO, lockUser: OK, steerer: NO, root: OK },
};
/** What shows or ends the session of the lock user. */
export const OWNER_OR_STEERERS: Verdicts = {
  ...{ anonymous: WHO, stranger: NO, reader: NO, writer: NO, editor: NO, lockUser: OK, steerer: OK, root: OK },
};
/** Only nodes send it. */
export const NOBODY: Verdicts = {
  ...{ anonymous: NEVER, stranger: NEVER, reader: NEVER, writer: NEVER },
  ...{ editor: NEVER, lockUser: NEVER, steerer: NEVER, root: NEVER },
};
