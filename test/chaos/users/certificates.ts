/**
 * The certificates of a cluster under chaos: those of two authorities, and the files that are in use.
 *
 * K1. The certificate of a user is of the authority whose certificates the nodes show. Clients trust both authorities
 *     from the beginning, as the first step of a change of authorities demands.
 * K2. A file is replaced at once. A certificate and its key are two files, so a node may read one old and one new file.
 */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PROGRAM } from '../../e2e/program.ts';
import type { Access } from './access.ts';

const run = promisify(execFile);

/** Two sets of certificates for each authority: one can replace the other. */
export const AUTHORITIES = ['a', 'b'] as const;
export type AuthorityName = (typeof AUTHORITIES)[number];
const SETS = [1, 2] as const;
type SetNumber = (typeof SETS)[number];

const AUTHORITY_FILES = ['ca', 'peer-ca'];
const ROOT_PASSWORD = 'known to the nodes only';

export interface CertificatesOptions {
  readonly dir: string;
  /** Names of nodes. */
  readonly nodes: readonly string[];
  readonly users: readonly string[];
}

export class Certificates {
  readonly #options: CertificatesOptions;
  #shown: { readonly authority: AuthorityName; readonly set: SetNumber } = { authority: 'a', set: 1 };

  private constructor(options: CertificatesOptions) {
    this.#options = options;
  }

  static async make(options: CertificatesOptions): Promise<Certificates> {
    const certificates = new Certificates(options);
    await Promise.all(AUTHORITIES.map((authority) => certificates.#make(authority)));
    mkdirSync(certificates.#file(''), { recursive: true, mode: 0o700 });
    certificates.#write('root.password', ROOT_PASSWORD);
    certificates.#write(
      'both.crt',
      AUTHORITIES.map((authority) => certificates.#made(authority, 1, 'ca.crt')).join(''),
    );
    certificates.show();
    certificates.trust(['a']);
    return certificates;
  }

  /** The authority of the certificates in use. */
  get authority(): AuthorityName {
    return this.#shown.authority;
  }

  /** The flags of a node. */
  flags(name: string): Readonly<Record<string, string>> {
    return {
      'tls-cert': this.#file(`${name}.crt`),
      'tls-key': this.#file(`${name}.key`),
      'tls-client-ca': this.#file('ca.crt'),
      'tls-client-certificates': 'optional',
      'tls-client-revoked': this.#file('ca.crl'),
      'tls-peer-cert': this.#file(`${name}-peer.crt`),
      'tls-peer-key': this.#file(`${name}-peer.key`),
      'tls-peer-ca': this.#file('peer-ca.crt'),
      'tls-peer-revoked': this.#file('peer-ca.crl'),
      'initial-root-password-file': this.#file('root.password'),
    };
  }

  /** For a user, by its certificate. */
  access(user: string): Access {
    const [certFile, keyFile] = [this.#file(`client-${user}.crt`), this.#file(`client-${user}.key`)];
    return { caFile: this.#file('both.crt'), certFile, keyFile }; // K1.
  }

  /** Puts other certificates of this authority in the place of those in use. Default: of the present authority. */
  show(authority: AuthorityName = this.#shown.authority): void {
    const set = this.#shown.set === 1 ? 2 : 1;
    this.#shown = { authority, set };
    const { nodes, users } = this.#options;
    const names = [...nodes.flatMap((name) => [name, `${name}-peer`]), ...users.map((user) => `client-${user}`)];
    for (const name of names) {
      for (const file of [`${name}.key`, `${name}.crt`]) {
        copyFileSync(join(this.#dirOf(authority, set), file), this.#file(`${file}.new`));
        renameSync(this.#file(`${file}.new`), this.#file(file)); // K2.
      }
    }
  }

  /** Nodes trust these authorities, and no others. */
  trust(authorities: readonly AuthorityName[]): void {
    for (const name of AUTHORITY_FILES) {
      for (const file of [`${name}.crl`, `${name}.crt`]) {
        this.#write(file, authorities.map((authority) => this.#made(authority, 1, file)).join(''));
      }
    }
  }

  async #make(authority: AuthorityName): Promise<void> {
    const [first, second] = SETS.map((set) => this.#dirOf(authority, set)) as [string, string];
    await this.#cert(first, 'init');
    mkdirSync(second, { recursive: true, mode: 0o700 });
    for (const name of AUTHORITY_FILES) {
      for (const kind of ['crt', 'key', 'crl'])
        copyFileSync(join(first, `${name}.${kind}`), join(second, `${name}.${kind}`));
    }
    const { nodes, users } = this.#options;
    for (const dir of [first, second]) {
      for (const name of nodes) await this.#cert(dir, 'node', name);
      for (const user of users) await this.#cert(dir, 'client', user);
    }
  }

  async #cert(dir: string, ...args: readonly string[]): Promise<void> {
    await run(process.execPath, [PROGRAM, 'cert', ...args, '--dir', dir]);
  }

  #made(authority: AuthorityName, set: SetNumber, file: string): string {
    return readFileSync(join(this.#dirOf(authority, set), file), 'utf8');
  }

  #dirOf(authority: AuthorityName, set: SetNumber): string {
    return join(this.#options.dir, `${authority}${set}`);
  }

  #file(name: string): string {
    return join(this.#options.dir, 'use', name);
  }

  #write(name: string, text: string): void {
    writeFileSync(this.#file(`${name}.new`), text, { mode: 0o600 });
    renameSync(this.#file(`${name}.new`), this.#file(name)); // K2.
  }
}
