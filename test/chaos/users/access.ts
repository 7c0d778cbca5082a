/** How the processes of a run log in to a cluster with TLS and authentication. */
import type { ConnectOptions } from 'remora';
import { passwordText } from './rights.ts';

/** Paths of files in PEM form. They are read again before each connection. */
export interface Access {
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
  /** Absent: only the certificate says who it is. */
  readonly user?: string;
  readonly password?: string;
}

/** The access of a client process. */
export interface ClientAccess {
  /** For the load that may do everything. */
  readonly load: Access;
  /** By user: without password. */
  readonly visitors: Readonly<Record<string, Access>>;
}

/** The options of a connection. `undefined`: plain text, without a user. */
export function connectOptions(access: Access | undefined): Pick<ConnectOptions, 'tls' | 'user' | 'password'> {
  if (access === undefined) return {};
  const { caFile, certFile, keyFile, user, password } = access;
  if (user !== undefined && password !== undefined) return { tls: { caFile }, user, password };
  return { tls: { caFile, certFile, keyFile } };
}

/** The access of a user by a password. */
export function withPassword(access: Access, user: string, password: number): Access {
  return { ...access, user, password: passwordText(user, password) };
}

/** The addresses of gateways as URLs. */
export function secured(endpoints: readonly string[], access: unknown): readonly string[] {
  return access === undefined ? endpoints : endpoints.map((endpoint) => `https://${endpoint}`);
}
