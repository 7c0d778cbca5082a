/** The servers that a command connects to, and how: from flags, variables and files. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { readEndpoints, ServiceError } from '@remora/base';
import { type Command, Option } from 'commander';
import { CommandError } from '../exit-codes.ts';
import { DEFAULT_BASE_PORT, localPorts } from '../local-ports.ts';
import type { Shell } from '../shell.ts';
import { addCredentialFlags, type CredentialFlags } from './credentials.ts';

export interface ServerFlags extends CredentialFlags {
  readonly endpoints: string;
  readonly cacert?: string;
  readonly cert?: string;
  /** `--key`. In commands with a `--key` of their own, which is a key of the store, `--cert-key`. */
  readonly certKey?: string;
}

export interface Servers {
  /** `host:port` each. */
  readonly endpoints: readonly string[];
  /** Undefined: plain text. */
  readonly tls: ConnectionOptions | undefined;
}

const DEFAULT_ENDPOINTS = [1, 2, 3].map((n) => `127.0.0.1:${localPorts(DEFAULT_BASE_PORT, n).client}`).join(',');

const FILES = [
  { name: 'cacert', flag: 'cacert', desc: 'certificate authorities of the nodes, for TLS', variable: 'REMORA_CACERT' },
  { name: 'cert', flag: 'cert', desc: 'certificate of this client, for TLS', variable: 'REMORA_CERT' },
  { name: 'certKey', flag: 'key', desc: 'private key of --cert', variable: 'REMORA_KEY' },
] as const;

export function addServerFlags(command: Command, shell: Shell): Command {
  const { env } = shell;
  const endpoints = '--endpoints <host:port,...>';
  const all = 'client addresses of nodes, with https:// for TLS (or REMORA_ENDPOINTS)';
  command.addOption(new Option(endpoints, all).default(env.REMORA_ENDPOINTS || DEFAULT_ENDPOINTS));
  for (const { name, flag, desc, variable } of FILES) {
    const isTaken = command.options.some(({ long }) => long === `--${flag}`);
    const option = new Option(`--${isTaken ? `cert-${flag}` : flag} <file>`, `${desc} (or ${variable})`);
    option.attributeName = () => name;
    // Help shows no default: a path of this machine is nothing that a reader of the reference has.
    command.addOption(env[variable] ? option.default(env[variable]) : option);
  }
  return addCredentialFlags(command, shell);
}

/**
 * With `https://`, or with a file for TLS, the command uses TLS.
 *
 * @throws CommandError `usage` for invalid endpoints, and for files that cannot be read or do not fit together.
 */
export function serversOf(flags: ServerFlags): Servers {
  const { addresses: endpoints, tls: isSecure } = endpointsOf(flags.endpoints);
  const { cacert, cert, certKey: key } = flags;
  const given = FILES.find(({ name }) => flags[name] !== undefined);
  if (isSecure === false && given !== undefined) {
    throw usage(`--endpoints: http:// means plain text, but --${given.flag} is given; use https://, or omit it`);
  }
  if ((cert === undefined) !== (key === undefined)) {
    throw usage('--cert and --key: give both, or none (or REMORA_CERT and REMORA_KEY)');
  }
  if (isSecure !== true && given === undefined) return { endpoints, tls: undefined };
  const tls = {
    ...(cacert === undefined ? {} : { ca: contentOf('cacert', cacert) }),
    ...(cert === undefined || key === undefined ? {} : pairOf(cert, key)),
  };
  if (cacert !== undefined && tls.ca !== undefined) certificateIn('cacert', cacert, tls.ca);
  return { endpoints, tls };
}

/** The certificate and the key, which fit together. */
function pairOf(certPath: string, keyPath: string): { readonly cert: string; readonly key: string } {
  const [cert, key] = [contentOf('cert', certPath), contentOf('key', keyPath)];
  const certificate = certificateIn('cert', certPath, cert);
  const isFitting = (): boolean => certificate.checkPrivateKey(createPrivateKey(key));
  const what = 'it contains no private key in PEM form without a passphrase';
  if (!orUsage(isFitting, `--key ${keyPath}: ${what}`)) {
    throw usage(`--key ${keyPath} is not the key of the certificate in --cert ${certPath}`);
  }
  return { cert, key };
}

/** The first one. */
function certificateIn(flag: string, path: string, content: string): X509Certificate {
  return orUsage(() => new X509Certificate(content), `--${flag} ${path}: it contains no certificate in PEM form`);
}

function orUsage<Result>(work: () => Result, message: string): Result {
  try {
    return work();
  } catch (cause) {
    throw usage(message, cause);
  }
}

/** From a flag, a variable or the default. */
function endpointsOf(text: string) {
  try {
    return readEndpoints(text.split(','));
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw usage(`--endpoints or REMORA_ENDPOINTS: ${error.message.replace(/^endpoints: /, '')}`);
  }
}

function contentOf(flag: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw usage(`--${flag} ${path}: it cannot be read: ${cause instanceof Error ? cause.message : cause}`, cause);
  }
}

function usage(message: string, cause?: unknown): CommandError {
  return new CommandError('usage', message, { cause });
}
