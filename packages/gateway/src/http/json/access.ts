/** The answers about who is asking, as they are in JSON. Types only: the console imports them. */
import type { PermissionsJson } from './users.ts';

/** `POST /v1/log-in`. The token itself is in the cookie `remora_session`, which scripts cannot read. */
export interface LogInJson {
  readonly user: string;
  /** Whether the user has the role root. */
  readonly isRoot: boolean;
  /** The log-in ends after this time without a request. */
  readonly expiresInMs: number;
}

/** `POST /v1/log-out` */
export interface LogOutJson {
  readonly loggedOut: true;
}

/** `GET /v1/whoami` */
export interface WhoAmIJson {
  /** Whether authentication is on. If not, everybody may do everything. */
  readonly authentication: boolean;
  /** Absent: nobody has logged in. */
  readonly user?: string;
  /** Whether there is such a user: a certificate may name none. */
  readonly exists: boolean;
  /** Whether the user has the role root. */
  readonly isRoot: boolean;
  /** How the caller has shown who it is; `token`: also by the cookie. */
  readonly how: 'none' | 'password' | 'certificate' | 'token';
  readonly roles: readonly string[];
  /** What these roles allow together. The role root allows everything, and is not listed here. */
  readonly permissions: PermissionsJson;
}
