import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { verifiedName } from '@remora/base';
import { expect, test } from 'vitest';
import { type Credentials, makeAuthority, makeClient, makeServer } from './make-certificate.ts';

const validity = { nowMs: Date.now(), days: 1 };

/** What a server that asks for certificates, and takes connections without them, finds out about a client. */
async function foundOut(client: Credentials | undefined, authority: Credentials, by: Credentials) {
  const server = await makeServer({ name: 'n1', hosts: ['127.0.0.1'] }, by, validity);
  const options = { key: server.key, cert: server.certificate, ca: authority.certificate };
  const port = createServer({ ...options, requestCert: true, rejectUnauthorized: false });
  const accepted = once(port, 'secureConnection') as Promise<[TLSSocket]>;
  port.listen(0, '127.0.0.1');
  await once(port, 'listening');
  const socket = connect({
    ...{ host: '127.0.0.1', port: (port.address() as AddressInfo).port, ca: by.certificate },
    ...(client !== undefined && { key: client.key, cert: client.certificate }),
  });
  const [served] = await accepted;
  const name = verifiedName(served);
  socket.destroy();
  port.close();
  return name;
}

test('the name of a certificate counts only if an authority of the port has signed it', async () => {
  const authority = await makeAuthority('ca', validity);
  const stranger = await makeAuthority('ca', validity);
  const ada = await makeClient('ada', authority, validity);
  const forged = await makeClient('ada', stranger, validity);
  expect(await foundOut(ada, authority, authority)).toBe('ada');
  expect(await foundOut(forged, authority, authority)).toBeUndefined();
  expect(await foundOut(undefined, authority, authority)).toBeUndefined();
});
