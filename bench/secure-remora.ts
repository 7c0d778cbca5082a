/**
 * A cluster with TLS at all ports and authentication on. Clients come as a user that is not root, and that may use all
 * keys and locks: the SDK by a client certificate, h2load by a token.
 */

import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import type { AuthenticateResponse } from '@remora/protocol/etcd';
import { AuthClient } from '@remora/protocol/grpc-clients';
import type { Access, ProcessCluster } from './process-cluster.ts';
import { type RemoraSettings, remora } from './servers.ts';

const USER = 'bench';
const PASSWORD = 'only on loopback';
const MEMBERS = ['n1', 'n2', 'n3'];

export function secureRemora(settings: RemoraSettings): ProcessCluster {
  const dir = join(settings.dir, `${settings.name}-secrets`);
  const file = (name: string): string => join(dir, name);
  const run = (args: readonly string[]): void => {
    execFileSync(process.execPath, [join(settings.root, 'packages/cli/bin/remora.mjs'), ...args], { cwd: dir });
  };
  mkdirSync(dir, { recursive: true });
  writeFileSync(file('password'), PASSWORD, { mode: 0o600 });
  makeCertificates(run);
  const access: Access = {
    ca: file('certs/ca.crt'),
    cert: file(`certs/client-${USER}.crt`),
    key: file(`certs/client-${USER}.key`),
    prepare: async (address) => addUser(address, run),
    token: (address) => logIn(address, readFileSync(file('certs/ca.crt'))),
  };
  const flags = (member: string): Readonly<Record<string, string>> => ({
    'tls-cert': file(`certs/${member}.crt`),
    'tls-key': file(`certs/${member}.key`),
    'tls-client-ca': file('certs/ca.crt'),
    'tls-client-certificates': 'optional',
    'tls-peer-ca': file('certs/peer-ca.crt'),
    'tls-peer-cert': file(`certs/${member}-peer.crt`),
    'tls-peer-key': file(`certs/${member}-peer.key`),
    'initial-root-password-file': file('password'),
  });
  return remora(settings, { access, flags });
}

type Run = (args: readonly string[]) => void;

function makeCertificates(run: Run): void {
  run(['cert', 'init']);
  for (const member of MEMBERS) run(['cert', 'node', member]);
  for (const user of ['root', USER]) run(['cert', 'client', user]);
}

function addUser(address: string, run: Run): void {
  const root = ['--cacert', 'certs/ca.crt', '--cert', 'certs/client-root.crt', '--key', 'certs/client-root.key'];
  const asRoot = (...args: readonly string[]) =>
    run(['auth', ...args, '--endpoints', `https://${address}`, '--no-discover', ...root]);
  asRoot('user', 'add', USER, '--new-password-file', 'password');
  asRoot('role', 'add', USER);
  asRoot('grant', USER, 'readwrite', '--all');
  asRoot('grant', USER, 'acquire', '--all', '--all-namespaces');
  asRoot('user', 'grant-role', USER, USER);
}

/** Returns a token, which is valid for five minutes. */
function logIn(address: string, ca: Buffer): Promise<string> {
  const client = new AuthClient(address, credentials.createSsl(ca));
  return new Promise<AuthenticateResponse>((resolve, reject) => {
    client.authenticate({ name: USER, password: PASSWORD }, (error, answer) => {
      client.close();
      if (error === null) resolve(answer);
      else reject(error);
    });
  }).then(({ token }) => token);
}
