/**
 * Reads certificates, keys and revocation lists, and checks them before anything uses them.
 *
 * TF1. A set of files is used as a whole or not at all: a certificate whose key has not been replaced yet changes
 *      nothing.
 * TF2. Each error names the option, the file and what to do.
 */
import { constants, createHash, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';
import { OWN_UMASK } from '../file-modes.ts';
import { chainProblem, dateProblem, expiryMs, type ReadRevocations, type Trust } from './trust.ts';

/** A file, and the option that names it. */
export interface TlsFile {
  readonly path: string;
  /** Such as `--tls-cert`. */
  readonly option: string;
}

export interface TlsFiles {
  /** The certificate of this end, and those that lead to its authority. */
  readonly certificate: TlsFile;
  readonly key: TlsFile;
  /** The authorities of the other ends. */
  readonly ca?: TlsFile | undefined;
  /** What they have revoked. */
  readonly revocations?: TlsFile | undefined;
  /** The other ends trust the same authorities: the own certificate must be signed by one of them. */
  readonly isMutual: boolean;
}

/** The contents of such files. */
export interface TlsTexts {
  readonly certificate: string;
  readonly key: string;
  readonly ca: string | undefined;
  readonly revocations: string | undefined;
  /** Tells contents apart. */
  readonly digest: string;
}

/** Files that fit together. */
export interface TlsMaterial {
  /** For `tls.Server.setSecureContext`, which makes ticket keys of its own for each context. */
  readonly options: SecureContextOptions;
  readonly context: SecureContext;
  readonly certificate: X509Certificate;
  /** When the own certificate, or one that it is sent with, expires. */
  readonly expiresMs: number;
  readonly trust: Trust;
  readonly digest: string;
}

/** A file cannot be used. The message is for the operator. */
export class TlsFilesError extends Error {
  override readonly name = 'TlsFilesError';
}

/** Files are smaller; a larger one is something else. */
const FILE_BYTES_MAX = 4 << 20;

/** @throws TlsFilesError for a file that cannot be read. */
export async function readTlsFiles(files: TlsFiles): Promise<TlsTexts> {
  const { certificate, key, ca, revocations } = files;
  const texts = await Promise.all([certificate, key, ca, revocations].map((file) => file && textOf(file)));
  const hash = createHash('sha256');
  for (const text of texts) hash.update(`${text?.length ?? -1}:${text ?? ''}`);
  const [certificateText = '', keyText = '', caText, revocationText] = texts;
  return {
    ...{ certificate: certificateText, key: keyText, ca: caText, revocations: revocationText },
    digest: hash.digest('hex'),
  };
}

/** The mode of the key, if other users may read it. */
export async function looseModeOf({ key }: TlsFiles): Promise<string | undefined> {
  const { mode } = await stat(key.path);
  return (mode & OWN_UMASK) === 0 ? undefined : (mode & 0o777).toString(8);
}

/** @throws TlsFilesError for files that are damaged, out of date or do not fit together. */
export async function checkTls(
  files: TlsFiles,
  texts: TlsTexts,
  { nowMs, readRevocations }: { readonly nowMs: number; readonly readRevocations: ReadRevocations },
): Promise<TlsMaterial> {
  const chain = certificatesOf(files.certificate, texts.certificate);
  const [certificate] = chain;
  if (certificate === undefined) throw wrong(files.certificate, 'it contains no certificate in PEM form');
  if (!certificate.checkPrivateKey(keyOf(files.key, texts.key))) {
    throw wrong(files.key, `it is not the key of the certificate in ${files.certificate.path}`);
  }
  const outdated = dateProblem(certificate, nowMs);
  if (outdated !== undefined) {
    throw wrong(files.certificate, `${outdated}; this machine's clock says ${new Date(nowMs).toISOString()}`);
  }
  const authorities = files.ca === undefined ? [] : certificatesOf(files.ca, texts.ca ?? '');
  if (files.ca !== undefined && authorities.length === 0)
    throw wrong(files.ca, 'it contains no certificate in PEM form');
  const trust = { authorities, revocations: await revocationsOf(files, texts, authorities, readRevocations) };
  const untrusted = files.isMutual ? chainProblem(chain, trust, nowMs) : undefined;
  if (untrusted !== undefined) throw wrong(files.certificate, `${untrusted} (${files.ca?.option} ${files.ca?.path})`);
  const options: SecureContextOptions = {
    ...{ cert: texts.certificate, key: texts.key },
    ...(texts.ca === undefined ? {} : { ca: texts.ca }),
    minVersion: 'TLSv1.2',
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  };
  const context = contextOf(files, options);
  return { options, context, certificate, expiresMs: expiryMs(chain), trust, digest: texts.digest };
}

async function revocationsOf(
  { revocations }: TlsFiles,
  texts: TlsTexts,
  authorities: readonly X509Certificate[],
  read: ReadRevocations,
): Promise<Trust['revocations']> {
  if (revocations === undefined || texts.revocations === undefined) return [];
  try {
    return await read(texts.revocations, authorities);
  } catch (cause) {
    throw wrong(revocations, `it cannot be used as a revocation list: ${textOfError(cause)}`, cause);
  }
}

async function textOf(file: TlsFile): Promise<string> {
  try {
    const { size } = await stat(file.path);
    if (size > FILE_BYTES_MAX) throw new Error(`it has ${size} bytes; a file of certificates has at most 4 MiB`);
    return await readFile(file.path, 'utf8');
  } catch (cause) {
    throw wrong(file, `it cannot be read: ${textOfError(cause)}`, cause);
  }
}

const BLOCK = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** All certificates of a file. */
function certificatesOf(file: TlsFile, pem: string): readonly X509Certificate[] {
  return (pem.match(BLOCK) ?? []).map((block) => {
    try {
      return new X509Certificate(block);
    } catch (cause) {
      throw wrong(file, 'it contains a certificate that is damaged', cause);
    }
  });
}

function keyOf(file: TlsFile, pem: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (cause) {
    const isEncrypted = pem.includes('ENCRYPTED');
    const what = isEncrypted
      ? 'the key is encrypted; store it without a passphrase'
      : 'it contains no private key in PEM form';
    throw wrong(file, what, cause);
  }
}

function contextOf(files: TlsFiles, options: SecureContextOptions): SecureContext {
  try {
    return createSecureContext(options);
  } catch (cause) {
    throw wrong(files.certificate, `TLS cannot use it: ${textOfError(cause)}`, cause);
  }
}

function wrong({ option, path }: TlsFile, what: string, cause?: unknown): TlsFilesError {
  return new TlsFilesError(`${option} ${path}: ${what}`, { cause });
}

function textOfError(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
