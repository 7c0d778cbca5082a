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
 * PI3. While authentication is off, every log-in succeeds, so a client with credentials works before and after
 *      authentication is switched on. A wrong one has no effect. A right one names the owner of the sessions that the
 *      client begins.
 */
export async function logInPipe(
  identification: Identification,
  caller: Caller,
  request: PipeLogIn,
): Promise<PipeLoggedIn> {
  const connection = connectionOf(caller);
  const token = identification.isOff
    ? await tokenIfRight(identification, connection, request) // PI3
    : await tokenOf(identification, connection, request);
  if (token !== '') connection.token = token; // PI1
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

/** Empty if the log-in is wrong. */
async function tokenIfRight(
  identification: Identification,
  { door, address }: ClientConnection,
  request: PipeLogIn,
): Promise<string> {
  if (request.with === 'password') {
    const { user, password } = request;
    return (await identification.logInIfRight({ user, password, door, address })) ?? '';
  }
  const { token } = request;
  return identification.identify({ token, certificateName: undefined, door, address })?.name === undefined ? '' : token;
}

function connectionOf(caller: Caller): ClientConnection {
  if (caller.kind === 'client') return caller.connection;
  throw new ServiceError('UNIMPLEMENTED', 'only clients log in');
}
