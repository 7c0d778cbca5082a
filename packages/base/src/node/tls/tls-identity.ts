/**
 * The certificate of a process, its key, and the authorities that it trusts: read from files, and read again when they
 * change.
 *
 * TI1. New connections use the newest files that fit together; connections that exist go on. A set of files that does
 *      not fit is logged once, and the one before it stays in use.
 * TI2. Files are used once two looks at them have seen the same contents, so that a set that is being replaced is not
 *      read half. A signal (`reload`) uses them at once.
 * TI3. Ticket keys belong to a context, so each reload ends the resumption of older sessions: it would skip the
 *      verification by new authorities and revocation lists.
 * TI4. Connections whose peer certificate no longer verifies are closed within `LOOK_MS` of the reload, or of the
 *      expiry of the certificate. Certificates are verified a few per turn, so that others wait for none of them.
 */
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Clock, Timer } from '../../clock.ts';
import type { Logger } from '../../logger.ts';
import { type CertificateNames, certificateNames, peerChainOf } from './peer-certificate.ts';
import { checkTls, looseModeOf, readTlsFiles, type TlsFiles, TlsFilesError, type TlsMaterial } from './tls-files.ts';
import { chainProblem, expiryMs, type ReadRevocations } from './trust.ts';

/** How often files and connections are looked at. Reading some small files is little work for libuv's pool. */
export const LOOK_MS = 2_000;
/** Verified in one turn; each takes some 100 µs. */
const VERIFIED_PER_TURN = 16;

export interface TlsIdentityDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly readRevocations: ReadRevocations;
  /** What this is for, as logs name it: `clients`, `peers`. */
  readonly purpose: string;
}

interface Watched {
  /** Of the peer's certificate. */
  readonly fingerprint: string;
  /** When the first certificate of the peer's chain expires. */
  readonly expiresMs: number;
}

export class TlsIdentity {
  readonly #files: TlsFiles;
  readonly #deps: TlsIdentityDeps;
  /** Connections whose other end has shown a certificate; as many as the ports accept. */
  readonly #watched = new Map<TLSSocket, Watched>();
  readonly #onReload: ((material: TlsMaterial) => void)[] = [];
  #material: TlsMaterial;
  #timer: Timer | undefined;
  /** What the last look has seen, and what could not be used. */
  #seen = '';
  #refused = '';
  #isStopped = false;
  #work: Promise<void> = Promise.resolve();

  private constructor(files: TlsFiles, material: TlsMaterial, deps: TlsIdentityDeps) {
    this.#files = files;
    this.#material = material;
    this.#deps = deps;
    this.#lookLater();
  }

  /** @throws TlsFilesError for files that cannot be used. */
  static async open(files: TlsFiles, deps: TlsIdentityDeps): Promise<TlsIdentity> {
    const material = await load(files, deps);
    await warnOfLooseKey(files, deps.logger);
    return new TlsIdentity(files, material, deps);
  }

  get material(): TlsMaterial {
    return this.#material;
  }

  /** The names in the own certificate. */
  get names(): CertificateNames {
    return certificateNames(this.#material.certificate);
  }

  /** Calls `take` with each new set of files. */
  onReload(take: (material: TlsMaterial) => void): void {
    this.#onReload.push(take);
  }

  /** Why the other end of a connection must not have it, by the files in use; undefined: it may. */
  refusalOf(socket: TLSSocket): string | undefined {
    return chainProblem(peerChainOf(socket), this.#material.trust, this.#deps.clock.wallMs());
  }

  /** Closes the connection once the certificate of its other end no longer verifies (TI4). */
  watch(socket: TLSSocket): void {
    const chain = peerChainOf(socket);
    const [certificate] = chain;
    if (certificate === undefined || socket.destroyed) return;
    this.#watched.set(socket, { fingerprint: certificate.fingerprint256, expiresMs: expiryMs(chain) });
    socket.once('close', () => this.#watched.delete(socket));
  }

  /** Uses the files as they are now. A failure is logged. */
  reload(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#take((await readTlsFiles(this.#files)).digest);
    });
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  #lookLater(): void {
    if (this.#isStopped) return;
    this.#timer = this.#deps.clock.setTimer(LOOK_MS, () => {
      void this.#inTurn(() => this.#look()).then(() => this.#lookLater());
    });
  }

  /** One reading at a time. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    this.#work = this.#work.then(work).catch((error: unknown) => this.#failed(error));
    return this.#work;
  }

  async #look(): Promise<void> {
    this.#closeExpired();
    const { digest } = await readTlsFiles(this.#files);
    const isSettled = digest === this.#seen;
    this.#seen = digest;
    if (isSettled && digest !== this.#material.digest && digest !== this.#refused) await this.#take(digest); // TI2
  }

  async #take(digest: string): Promise<void> {
    this.#refused = digest;
    const material = await load(this.#files, this.#deps);
    this.#refused = '';
    if (this.#isStopped) return;
    const { authorities, revocations } = this.#material.trust;
    this.#material = material;
    for (const take of this.#onReload) take(material);
    const { purpose, logger } = this.#deps;
    const { serialNumber: serial } = material.certificate;
    const fields = { purpose, serial, expires: new Date(material.expiresMs).toISOString() };
    logger.info(fields, 'uses new certificates and keys');
    if (sameTexts(authorities, material.trust.authorities) && sameLists(revocations, material.trust.revocations))
      return;
    await this.#verifyAll();
  }

  /** TI1: a set that fails again in the same way is not logged again. */
  #failed(error: unknown): void {
    const { logger, purpose } = this.#deps;
    const reason = error instanceof Error ? error.message : String(error);
    if (reason === this.#failure) return;
    this.#failure = reason;
    const message = 'certificates or keys have changed and cannot be used; those in use stay in use';
    if (error instanceof TlsFilesError) logger.warn({ purpose, reason }, message);
    else logger.error({ purpose, error }, message);
  }

  #failure = '';

  #closeExpired(): void {
    const nowMs = this.#deps.clock.wallMs();
    for (const [socket, { expiresMs }] of this.#watched) {
      if (expiresMs < nowMs) this.#close(socket, 'the certificate has expired');
    }
  }

  /** TI4. */
  async #verifyAll(): Promise<void> {
    const { clock } = this.#deps;
    const problems = new Map<string, string | undefined>();
    let verified = 0;
    for (const [socket, { fingerprint }] of [...this.#watched]) {
      if (!problems.has(fingerprint)) {
        problems.set(fingerprint, this.refusalOf(socket));
        if (++verified % VERIFIED_PER_TURN === 0) await new Promise<void>((resolve) => clock.setImmediate(resolve));
      }
      const problem = problems.get(fingerprint);
      if (problem !== undefined) this.#close(socket, problem);
    }
  }

  #close(socket: TLSSocket, reason: string): void {
    const { logger, purpose } = this.#deps;
    logger.warn(
      { purpose, address: addressOf(socket), reason },
      'closed a connection: its certificate no longer verifies',
    );
    socket.destroy();
  }
}

/** `host:port` of the other end. */
export function addressOf({ remoteAddress, remotePort }: Socket): string {
  if (remoteAddress === undefined) return 'unknown';
  return remoteAddress.includes(':') ? `[${remoteAddress}]:${remotePort}` : `${remoteAddress}:${remotePort}`;
}

async function load(files: TlsFiles, { clock, readRevocations }: TlsIdentityDeps): Promise<TlsMaterial> {
  return checkTls(files, await readTlsFiles(files), { nowMs: clock.wallMs(), readRevocations });
}

async function warnOfLooseKey(files: TlsFiles, logger: Pick<Logger, 'warn'>): Promise<void> {
  const mode = await looseModeOf(files);
  if (mode === undefined) return;
  const { path: file } = files.key;
  logger.warn({ file, mode, advice: `run: chmod 600 ${file}` }, 'the key is readable by other users');
}

function sameTexts(a: TlsMaterial['trust']['authorities'], b: TlsMaterial['trust']['authorities']): boolean {
  return a.map(({ fingerprint256 }) => fingerprint256).join() === b.map(({ fingerprint256 }) => fingerprint256).join();
}

function sameLists(a: TlsMaterial['trust']['revocations'], b: TlsMaterial['trust']['revocations']): boolean {
  const text = (lists: TlsMaterial['trust']['revocations']): string =>
    lists.map(({ issuer, serials }) => `${issuer} ${[...serials].sort().join()}`).join('\n');
  return text(a) === text(b);
}
