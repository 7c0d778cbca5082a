import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OWN_DIR_MODE, OWN_FILE_MODE } from '@remora/base';
import { CommandError } from '../exit-codes.ts';
import type { Credentials } from './make-certificate.ts';

/** The files of a directory of certificates: `<name>.crt` and `<name>.key`. */
export class CertificateFiles {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** @throws CommandError if there is one: clients and nodes may trust it. */
  refuseExisting(...names: readonly string[]): void {
    const existing = names.flatMap((name) => this.#paths(name)).find((path) => existsSync(path));
    if (existing !== undefined) {
      throw new CommandError('failed', `${existing} exists already; remove it, or choose another --dir`);
    }
  }

  /** @throws CommandError if there is none. */
  read(name: string): Credentials {
    const [certificate, key] = this.#paths(name).map((path) => {
      try {
        return readFileSync(path, 'utf8');
      } catch (error) {
        throw new CommandError(
          'failed',
          `${path} cannot be read; make the authorities first: remora cert init --dir ${this.#dir}`,
          { cause: error },
        );
      }
    });
    return { certificate: certificate ?? '', key: key ?? '' };
  }

  /** Writes both, the key for its owner alone. Returns their paths. */
  write(name: string, { certificate, key }: Credentials): readonly string[] {
    const [certificatePath = '', keyPath = ''] = this.#paths(name);
    mkdirSync(this.#dir, { recursive: true, mode: OWN_DIR_MODE });
    writeFileSync(keyPath, key, { mode: OWN_FILE_MODE, flag: 'wx' });
    writeFileSync(certificatePath, certificate, { mode: OWN_FILE_MODE, flag: 'wx' });
    return [certificatePath, keyPath];
  }

  /** Removes both, if they are there. */
  remove(name: string): void {
    for (const path of this.#paths(name)) rmSync(path, { force: true });
  }

  /** The revocation list of an authority, if it has one. */
  readRevocations(name: string): string | undefined {
    const path = this.#revocations(name);
    return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  }

  /** Replaces it at once, as nodes may read it at any time; returns its path. */
  writeRevocations(name: string, list: string): string {
    const path = this.#revocations(name);
    writeFileSync(`${path}.new`, list, { mode: OWN_FILE_MODE });
    renameSync(`${path}.new`, path);
    return path;
  }

  #revocations(name: string): string {
    return join(this.#dir, `${name}.crl`);
  }

  #paths(name: string): readonly string[] {
    return ['crt', 'key'].map((kind) => join(this.#dir, `${name}.${kind}`));
  }
}
