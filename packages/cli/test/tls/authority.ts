/** Certificates for tests, in a directory of their own. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type Credentials,
  makeAuthority,
  makeClient,
  makePeer,
  makeServer,
  type Validity,
} from '../../src/certs/make-certificate.ts';

const DAY_MS = 86_400_000;

/** Valid now. */
export function fresh(days = 30): Validity {
  return { nowMs: Date.now(), days };
}

/** Expired a while ago. */
export function expired(): Validity {
  return { nowMs: Date.now() - 3 * DAY_MS, days: 1 };
}

/** Valid from tomorrow on. */
export function notYetValid(): Validity {
  return { nowMs: Date.now() + DAY_MS, days: 30 };
}

const LOOPBACK = ['localhost', '127.0.0.1', '::1'];

/** Files with certificates. `close` removes them. */
export class TestFiles {
  readonly dir = mkdtempSync(join(tmpdir(), 'remora-tls-'));

  /** Writes a file over an older one; returns its path. */
  write(name: string, text: string, mode = 0o600): string {
    const path = join(this.dir, name);
    writeFileSync(path, text, { mode });
    return path;
  }

  /** Writes `<name>.crt` and `<name>.key`. */
  writePair(name: string, { certificate, key }: Credentials): { readonly certificate: string; readonly key: string } {
    return { certificate: this.write(`${name}.crt`, certificate), key: this.write(`${name}.key`, key) };
  }

  close(): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** An authority, and what it signs. */
export class TestAuthority {
  readonly credentials: Credentials;

  private constructor(credentials: Credentials) {
    this.credentials = credentials;
  }

  static async make(name = 'Test CA', validity = fresh(3_650)): Promise<TestAuthority> {
    return new TestAuthority(await makeAuthority(name, validity));
  }

  get certificate(): string {
    return this.credentials.certificate;
  }

  server(validity = fresh(), hosts: readonly string[] = LOOPBACK): Promise<Credentials> {
    return makeServer({ name: 'n1', hosts }, this.credentials, validity);
  }

  peer(name: string, validity = fresh(), trustDomain = 'remora'): Promise<Credentials> {
    return makePeer({ name, hosts: LOOPBACK, trustDomain }, this.credentials, validity);
  }

  client(user: string, validity = fresh()): Promise<Credentials> {
    return makeClient(user, this.credentials, validity);
  }
}
