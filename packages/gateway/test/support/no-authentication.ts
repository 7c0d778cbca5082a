import type { Identification } from '@remora/auth';
import { ServiceError } from '@remora/base';
import type { ClientConnection } from '@remora/protocol';

/** A cluster whose authentication is off. */
export const NO_AUTHENTICATION: Identification = {
  isOff: true,
  identify: () => undefined,
  identifyByPassword: async () => undefined,
  logIn: async () => {
    throw new ServiceError('AUTH_REFUSED', 'authentication is off');
  },
  logInIfRight: async () => undefined,
  renewed: () => undefined,
};

/** A connection without a certificate, on which nobody has logged in. */
export function anonymousConnection(): ClientConnection {
  return { door: 'pipe', certificateName: undefined, address: '127.0.0.1', token: undefined };
}
