import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { createServer } from 'node:tls';

/** Made for tests at 127.0.0.1, valid until the year 2126. It protects nothing. */
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg5u+h1nVFkq1K4Gyz
fb7gv+W1UIPXusy0FTWT0y8wMmahRANCAARmeIcnKaTuJkBtOPJ5xfGtWrvxOLRF
TXk66BZyvehOO0rz8mKdflRUe8g5ZIcBeDJexBi7WAdPB08JWHRdplzF
-----END PRIVATE KEY-----
`;
const CERT = `-----BEGIN CERTIFICATE-----
MIIBmjCCAUGgAwIBAgIUHElVAxvebIvknEDMD8bSQbb5+n0wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMjIwNTAzOFoYDzIxMjYxMDI5
MjA1MDM4WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAARmeIcnKaTuJkBtOPJ5xfGtWrvxOLRFTXk66BZyvehOO0rz8mKdflRU
e8g5ZIcBeDJexBi7WAdPB08JWHRdplzFo28wbTAdBgNVHQ4EFgQUT89Of7I0zuao
bnYSFbTzGrF9SbAwHwYDVR0jBBgwFoAUT89Of7I0zuaobnYSFbTzGrF9SbAwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDRwAwRAIgHHnA4bp3ejiwQUf2vscJSV2gMEmUsIZ9YGGqwrFH61gCIA7g
5tEKJD53kkuj2WzpQZHRZ7wSEF7jM6GoAfNG6no0
-----END CERTIFICATE-----
`;

interface TlsFront {
  readonly address: string;
  readonly ca: string;
  /** The server names that clients requested, one for each connection. */
  readonly names: readonly string[];
  close(): void;
}

/** Terminates TLS and forwards the content, like the TLS front ends that many operators use. */
export async function tlsFront(target: string): Promise<TlsFront> {
  const [host = '', port = ''] = target.split(':');
  const names: string[] = [];
  const server = createServer({ key: KEY, cert: CERT }, (outside) => {
    names.push(outside.servername || 'none');
    const inside = connect(Number(port), host);
    outside.pipe(inside).pipe(outside);
    outside.on('error', () => inside.destroy());
    inside.on('error', () => outside.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    ca: CERT,
    names,
    close: () => void server.close(),
  };
}
