/** The users whose rights change during a run, and how the journals describe their rights. */

/** How a user proves who it is. */
export interface Visitor {
  readonly user: string;
  readonly by: 'password' | 'certificate';
}

export const VISITORS: readonly Visitor[] = [
  { user: 'visitor-1', by: 'password' },
  { user: 'visitor-2', by: 'password' },
  { user: 'visitor-3', by: 'certificate' },
];

/** What a request of a visitor needs. `exists`: only that the user exists. */
export type Right = 'read' | 'write' | 'lock' | 'exists';

/** What a user may do. */
export interface Rights {
  /** The number of its password; each user and each change has a new one. Null: there is no such user. */
  readonly password: number | null;
  readonly read: boolean;
  readonly write: boolean;
  readonly lock: boolean;
}

/** The numbers of the present passwords, by user. Absent: there is no such user. */
export type Passwords = Readonly<Record<string, number>>;

/** The journal's form of a change, with the rights of the user after it. */
export interface RecordedRights {
  readonly op: 'change';
  readonly user: string;
  readonly how: string;
  readonly after: Rights;
}

const VISITED = 'visited/';

/** Visitors have rights on the keys and locks of this prefix, and on nothing else. */
export const VISITED_PREFIX = Buffer.from(VISITED);

export function visitedOf(r: number): string {
  return `${VISITED}${r}/`;
}

export function isVisited(key: string): boolean {
  return key.startsWith(VISITED);
}

export function passwordText(user: string, password: number): string {
  return `password ${password} of ${user}`;
}
