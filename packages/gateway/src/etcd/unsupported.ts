import { ServiceError } from '@remora/base';

/** Refuses a method of etcd's that Remora does not have, and says what to do instead. */
export function unsupported(method: string, instead: string): ServiceError {
  return new ServiceError('UNIMPLEMENTED', `remora: ${method} is not supported; ${instead}`);
}
