/**
 * Remora's own gRPC API (`remora.v1`) as generated code. It stands apart from the package's main entry because it is
 * large.
 */
export * as admin from '../gen/remora/v1/admin.ts';
export * as auth from '../gen/remora/v1/auth.ts';
export * from '../gen/remora/v1/lock.ts';
