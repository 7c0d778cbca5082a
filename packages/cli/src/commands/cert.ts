import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { int } from '@remora/base';
import { Command } from 'commander';
import { CertificateFiles } from '../certs/certificate-files.ts';
import { type CertificateFacts, inspectCertificates, isKeyOf } from '../certs/inspect-certificate.ts';
import type { Credentials, Validity } from '../certs/make-certificate.ts';
import { CommandError } from '../exit-codes.ts';
import { printableText } from '../format/bytes-text.ts';
import { counted } from '../format/sizes.ts';
import type { Shell } from '../shell.ts';
import { examples, flagReader } from './connection.ts';

const AUTHORITY = 'ca';
const PEER_AUTHORITY = 'peer-ca';
const DAYS_MAX = 36_500;
const LOOPBACK = ['localhost', '127.0.0.1', '::1'];
/** Names become names of files and parts of identities. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

interface DirFlags {
  readonly dir: string;
  readonly days: number;
}

export function certCommand(shell: Shell): Command {
  return new Command('cert')
    .summary('Makes and shows TLS certificates.')
    .description(
      'Makes and shows TLS certificates, for clusters without a certificate authority of their own. Clients and nodes ' +
        'trust each other by two authorities: ca signs what clients see, peer-ca what nodes show to each other.',
    )
    .addHelpText(
      'after',
      examples(
        'remora cert init --dir certs',
        'remora cert node n1 --host n1.example.com --dir certs',
        'remora cert client ann --dir certs',
        'remora cert revoke certs/client-ann.crt --dir certs',
        'remora cert inspect certs/n1.crt --key certs/n1.key',
      ),
    )
    .addCommand(initCommand(shell))
    .addCommand(nodeCommand(shell))
    .addCommand(clientCommand(shell))
    .addCommand(revokeCommand(shell))
    .addCommand(inspectCommand(shell));
}

function initCommand(shell: Shell): Command {
  const command = new Command('init')
    .summary('Makes the two certificate authorities of a cluster.')
    .description(
      'Makes the two certificate authorities of a cluster, ca and peer-ca, and their empty revocation lists. Keep their keys away from nodes: with ' +
        'peer-ca.key anybody can make a node, and with ca.key any user, root included.',
    )
    .option('--name <name>', 'name of the authorities', 'Remora');
  return addFlags(command, 3_650)
    .addHelpText('after', examples('remora cert init --dir certs'))
    .action(async ({ name, ...flags }: DirFlags & { readonly name: string }) => {
      const files = new CertificateFiles(flags.dir);
      files.refuseExisting(AUTHORITY, PEER_AUTHORITY);
      const { makeAuthority } = await maker();
      const { makeRevocationList } = await revoker();
      for (const [file, title] of [[AUTHORITY, `${name} CA`] as const, [PEER_AUTHORITY, `${name} peer CA`] as const]) {
        const authority = await makeAuthority(title, validityOf(flags));
        tellWritten(shell, files.write(file, authority));
        shell.out(files.writeRevocations(file, await makeRevocationList([], undefined, authority, validityOf(flags))));
      }
    });
}

interface NodeFlags extends DirFlags {
  readonly host: readonly string[];
  readonly trustDomain: string;
}

function nodeCommand(shell: Shell): Command {
  const command = new Command('node')
    .summary('Makes the certificates of a node.')
    .description(
      'Makes the certificates of a node: one that clients see, and one for other nodes, which names the node. Both are ' +
        'valid for the given hosts and for this machine (localhost, 127.0.0.1, ::1).',
    )
    .argument('<name>', 'name of the node, as in its --name', readName)
    .option('--host <host>', 'host name or address by which others connect to it; repeatable', collect, [])
    .option('--trust-domain <name>', 'first part of the identity of nodes: spiffe://<name>/node/…', 'remora');
  return addFlags(command, 365)
    .addHelpText('after', examples('remora cert node n1 --host n1.example.com --host 10.0.0.1 --dir certs'))
    .action(async (name: string, { host, trustDomain, ...flags }: NodeFlags) => {
      const files = new CertificateFiles(flags.dir);
      files.refuseExisting(name, `${name}-peer`);
      const { makePeer, makeServer } = await maker();
      const names = { name, hosts: [...new Set([...host, ...LOOPBACK])] };
      const validity = validityOf(flags);
      const [server, peer] = [
        await makeServer(names, files.read(AUTHORITY), validity),
        await makePeer({ ...names, trustDomain }, files.read(PEER_AUTHORITY), validity),
      ];
      tellWritten(shell, files.write(name, server));
      tellWritten(shell, files.write(`${name}-peer`, peer));
    });
}

function clientCommand(shell: Shell): Command {
  const command = new Command('client')
    .summary('Makes the certificate of a user.')
    .description('Makes a certificate by which a client is the named user, without a password.')
    .argument('<user>', 'name of the user', readName);
  return addFlags(command, 365)
    .addHelpText('after', examples('remora cert client ann --dir certs'))
    .action(async (user: string, flags: DirFlags) => {
      const files = new CertificateFiles(flags.dir);
      const file = `client-${user}`;
      files.refuseExisting(file);
      const { makeClient } = await maker();
      tellWritten(shell, files.write(file, await makeClient(user, files.read(AUTHORITY), validityOf(flags))));
    });
}

function revokeCommand(shell: Shell): Command {
  const command = new Command('revoke')
    .summary('Revokes certificates.')
    .description(
      'Adds certificates to the revocation list of the authority that has signed them: ca.crl or peer-ca.crl. Nodes ' +
        'that were started with this list close the connections of these certificates within 10 seconds.',
    )
    .argument('<file...>', 'certificates in PEM form');
  return addFlags(command, 3_650)
    .addHelpText('after', examples('remora cert revoke certs/client-ann.crt --dir certs'))
    .action(async (paths: readonly string[], flags: DirFlags) => {
      const files = new CertificateFiles(flags.dir);
      const authorities = [AUTHORITY, PEER_AUTHORITY].map((name) => ({ name, credentials: files.read(name) }));
      const { makeRevocationList } = await revoker();
      const wanted = paths.map((path) => ({ path, certificate: certificateOf(path) }));
      const stray = wanted.find((each) => !authorities.some((by) => isSignedBy(each.certificate, by.credentials)));
      if (stray !== undefined) {
        throw new CommandError('failed', `${stray.path} is not signed by an authority of ${flags.dir}`);
      }
      for (const { name, credentials } of authorities) {
        const signed = wanted.filter(({ certificate }) => isSignedBy(certificate, credentials));
        if (signed.length === 0) continue;
        const certificates = signed.map(({ certificate }) => certificate);
        const before = files.readRevocations(name);
        const list = await makeRevocationList(certificates, before, credentials, validityOf(flags));
        shell.out(files.writeRevocations(name, list));
      }
    });
}

function certificateOf(path: string): X509Certificate {
  try {
    return new X509Certificate(fileText(path));
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError('failed', `${path} contains no certificate in PEM form`, { cause: error });
  }
}

function isSignedBy(certificate: X509Certificate, { certificate: authority }: Credentials): boolean {
  return certificate.verify(new X509Certificate(authority).publicKey);
}

interface InspectFlags {
  readonly key?: string;
  readonly json?: boolean;
}

function inspectCommand(shell: Shell): Command {
  return new Command('inspect')
    .summary('Shows the certificates of a file.')
    .description('Shows the certificates of a file, and whether a key belongs to the first of them.')
    .argument('<file>', 'certificates in PEM form')
    .option('--key <file>', 'key that must be that of the first certificate')
    .option('--json', 'print JSON')
    .addHelpText('after', examples('remora cert inspect certs/n1.crt --key certs/n1.key'))
    .action((file: string, { key, json }: InspectFlags) => {
      const pem = fileText(file);
      const found = facts(file, pem);
      if (key !== undefined && !isKey(key, pem)) {
        throw new CommandError('failed', `${key} is not the key of the first certificate of ${file}`);
      }
      if (json === true) return shell.out(JSON.stringify(found));
      shell.out(found.map(factsText).join('\n\n'));
    });
}

/** Loaded when it is needed: it is large. */
function maker() {
  return import('../certs/make-certificate.ts');
}

function revoker() {
  return import('../certs/revocation-lists.ts');
}

function addFlags(command: Command, days: number): Command {
  return command
    .option('--dir <directory>', 'directory of the certificates and keys', 'certs')
    .option('--days <number>', 'days for which it is valid', flagReader(int({ min: 1, max: DAYS_MAX })), days);
}

function validityOf({ days }: DirFlags): Validity {
  return { nowMs: Date.now(), days };
}

function collect(host: string, before: readonly string[]): readonly string[] {
  return [...before, host];
}

function readName(name: string): string {
  if (NAME.test(name)) return name;
  throw new CommandError(
    'usage',
    `invalid name ${printableText(name)}: expected 1 to 64 letters, digits, dots, dashes and underscores`,
  );
}

function fileText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new CommandError('failed', `${path} cannot be read: ${error instanceof Error ? error.message : error}`);
  }
}

function facts(path: string, pem: string): readonly CertificateFacts[] {
  try {
    return inspectCertificates(pem, Date.now());
  } catch (error) {
    throw new CommandError('failed', `${path}: ${error instanceof Error ? error.message : error}`);
  }
}

function isKey(path: string, pem: string): boolean {
  try {
    return isKeyOf(fileText(path), pem);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError('failed', `${path} contains no private key in PEM form`, { cause: error });
  }
}

function tellWritten(shell: Shell, paths: readonly string[]): void {
  for (const path of paths) shell.out(path);
}

function factsText({ names, uses, from, to, daysLeft, ...rest }: CertificateFacts): string {
  const left = daysLeft < 0 ? `expired ${counted(-daysLeft, 'day')} ago` : `${counted(daysLeft, 'day')} left`;
  const lines: readonly (readonly [string, string])[] = [
    ['subject', rest.subject],
    ['issuer', rest.issuer],
    ['names', names.join(', ') || 'none'],
    ['uses', uses.join(', ') || 'any'],
    ['valid', `${from.toISOString()} to ${to.toISOString()} (${left})`],
    ['serial', rest.serial],
    ['SHA-256', rest.fingerprint],
  ];
  return lines.map(([name, text]) => `${name.padEnd(9)}${printableText(text)}`).join('\n');
}
