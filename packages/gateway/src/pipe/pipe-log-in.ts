import { type Identification, TOKEN_LIFE_MS } from '@remora/auth';
import { ServiceError } from '@remora/base';
import type { Caller, ClientConnection, PipeLoggedIn, PipeLogIn } from '@remora/protocol';

/**
 * Logs a connection of the Pipe in.
 *
 * PI1. A connection belongs to the user of its latest log-in that succeeded. A log-in that fails changes nothing, so a
 *      client may renew its log-in while calls are in flight.
 * PI2. The token is kept, and looked at in each call: when it ends, calls are refused as `UNAUTHENTICATED` until the
 *      client has logged in again.
 * PI3. While authentication is off, a log-in succeeds and has no effect: a client with credentials works before and
 *      after authentication is switched on.
 */
export async function logInPipe(
  identification: Identification,
  caller: Caller,
  request: PipeLogIn,
): Promise<PipeLoggedIn> {
  const connection = connectionOf(caller);
  if (identification.isOff) return { token: '', lifeMs: TOKEN_LIFE_MS }; // PI3
  const token = await tokenOf(identification, connection, request);
  connection.token = token; // PI1
  return { token, lifeMs: TOKEN_LIFE_MS };
}

async function tokenOf(
  identification: Identification,
  { door, address }: ClientConnection,
  request: PipeLogIn,
): Promise<string> {
  if (request.with === 'password') {
    const { user, password } = request;
    return identification.logIn({ user, password, door, address });
  }
  identification.identify({ token: request.token, certificateName: undefined, door, address });
  return request.token;
}

function connectionOf(caller: Caller): ClientConnection {
  if (caller.kind === 'client') return caller.connection;
  throw new ServiceError('UNIMPLEMENTED', 'only clients log in');
}
