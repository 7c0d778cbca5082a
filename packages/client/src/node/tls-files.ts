/**
 * The options of TLS of a client, with files that are read again before each connection.
 *
 * TF1. A connection uses the files as they are when it is dialled: certificates that live for hours may change under a
 *      process that lives for months. Connections that are open stay.
 * TF2. Files that cannot be read, or a certificate and a key that do not fit together, change nothing: the last good
 *      ones stay in use, and the client logs that once. Files change one after the other, so this may be for a moment.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { type Logger, ServiceError } from '@remora/base';

/** The options of `node:tls`, and files in place of `ca`, `cert` and `key`, which are read before each connection. */
export interface TlsOptions extends ConnectionOptions {
  /** The certificate authorities of the nodes, in PEM form. */
  readonly caFile?: string | undefined;
  /** The client's certificate, in PEM form, with the chain to its authority. Needs `keyFile`. */
  readonly certFile?: string | undefined;
  /** The key of that certificate, in PEM form. */
  readonly keyFile?: string | undefined;
}

const FILES = [
  ['caFile', 'ca'],
  ['certFile', 'cert'],
  ['keyFile', 'key'],
] as const;

export class ClientTls {
  readonly #plain: ConnectionOptions;
  readonly #files: readonly { readonly path: string; readonly option: 'ca' | 'cert' | 'key' }[];
  readonly #logger: Logger;
  #current: Partial<Record<'ca' | 'cert' | 'key', Buffer>> = {};
  #said = '';

  /** @throws ServiceError INVALID_ARGUMENT for contradictory options, and for files that cannot be used. */
  constructor(options: TlsOptions, logger: Logger) {
    const { caFile, certFile, keyFile, ...plain } = options;
    this.#plain = plain;
    this.#logger = logger;
    this.#files = FILES.flatMap(([name, option]) => {
      const path: unknown = { caFile, certFile, keyFile }[name];
      if (path === undefined) return [];
      if (typeof path !== 'string' || path === '') throw invalid(`tls.${name}: expected the path of a file`);
      if (plain[option] !== undefined) throw invalid(`tls: give either ${name} or ${option}, not both`);
      return [{ path, option }];
    });
    if ((certFile === undefined) !== (keyFile === undefined)) {
      throw invalid('tls: certFile and keyFile belong together; give both, or neither');
    }
    try {
      this.#current = this.#read();
    } catch (error) {
      throw invalid(`tls: ${(error as Error).message}`);
    }
  }

  /** TF1. The options for a connection that begins now. */
  get options(): ConnectionOptions {
    if (this.#files.length === 0) return this.#plain;
    try {
      this.#current = this.#read();
      this.#said = '';
    } catch (error) {
      this.#complain((error as Error).message); // TF2
    }
    return { ...this.#plain, ...this.#current };
  }

  /** @throws Error that says which file cannot be used, and why. */
  #read(): Partial<Record<'ca' | 'cert' | 'key', Buffer>> {
    const found: Partial<Record<'ca' | 'cert' | 'key', Buffer>> = {};
    for (const { path, option } of this.#files) found[option] = readFileSync(path);
    const { cert, key } = found;
    if (cert === undefined || key === undefined || this.#isCurrent(cert, key)) return found;
    if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey({ key, ...this.#passphrase() }))) {
      throw new Error(`${this.#pathOf('key')} is not the key of the certificate in ${this.#pathOf('cert')}`);
    }
    return found;
  }

  #isCurrent(cert: Buffer, key: Buffer): boolean {
    return this.#current.cert?.equals(cert) === true && this.#current.key?.equals(key) === true;
  }

  #passphrase(): { readonly passphrase?: string } {
    const { passphrase } = this.#plain;
    return passphrase === undefined ? {} : { passphrase };
  }

  #pathOf(option: string): string {
    return this.#files.find((file) => file.option === option)?.path ?? option;
  }

  #complain(reason: string): void {
    if (reason === this.#said) return;
    this.#said = reason;
    this.#logger.warn({ reason }, 'the files for TLS cannot be used; new connections use the last good ones');
  }
}

/** Undefined without options. @throws ServiceError INVALID_ARGUMENT as the constructor. */
export function clientTls(options: TlsOptions | undefined, logger: Logger): ClientTls | undefined {
  return options === undefined ? undefined : new ClientTls(options, logger);
}

function invalid(problem: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', problem);
}
