/** `remora/admin`: the client for administration, which `remora` leaves out because few programs need it. */
export { type ErrorCode, ServiceError, ServiceError as RemoraError } from '@remora/base';
export type { admin, auth } from '@remora/protocol/remora';
export { AdminClient, type RangeChangeRequest, type RangeListOptions, type SeenRange } from './node/admin-client.ts';
export type { AdminClientOptions } from './node/admin-connection.ts';
export type { AuthChangeRequest, AuthClient, AuthQuestion } from './node/auth-client.ts';
export type { TlsOptions } from './node/tls-files.ts';
export type { CredentialOptions, TokenOption } from './transport/credentials.ts';
export type { KnownToken } from './transport/log-ins.ts';
export { Listing, type Page } from './values/listing.ts';
