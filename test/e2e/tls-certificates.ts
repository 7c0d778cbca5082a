/** Certificates of a cluster under test, as `remora cert` makes them. */
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ConnectionOptions } from 'node:tls';
import { runHere } from './command-line.ts';

export class TestCertificates {
  readonly dir = mkdtempSync(join(tmpdir(), 'remora-certs-'));

  /** With two authorities, three nodes and the user root. */
  static async make(): Promise<TestCertificates> {
    const made = new TestCertificates();
    await made.run('init');
    for (const name of ['n1', 'n2', 'n3']) await made.run('node', name);
    await made.run('client', 'root');
    return made;
  }

  /** Runs `remora cert` in the directory. */
  async run(...args: readonly string[]): Promise<void> {
    const { code, err } = await runHere([], ['cert', ...args, '--dir', this.dir]);
    if (code !== 0) throw new Error(err);
  }

  path(name: string): string {
    return join(this.dir, name);
  }

  text(name: string): string {
    return readFileSync(this.path(name), 'utf8');
  }

  write(name: string, text: string): void {
    writeFileSync(this.path(name), text, { mode: 0o600 });
  }

  /** Puts the certificate and key of one name where another has its own. */
  replace(name: string, by: TestCertificates): void {
    for (const kind of ['crt', 'key']) copyFileSync(by.path(`${name}.${kind}`), this.path(`${name}.${kind}`));
  }

  /** The flags of a node for its port for nodes. */
  peerFlags(name: string): Readonly<Record<string, string>> {
    return {
      'tls-peer-cert': this.path(`${name}-peer.crt`),
      'tls-peer-key': this.path(`${name}-peer.key`),
      'tls-peer-ca': this.path('peer-ca.crt'),
      'tls-peer-revoked': this.path('peer-ca.crl'),
    };
  }

  /** The flags of a node for its ports for clients. */
  clientFlags(name: string): Readonly<Record<string, string>> {
    return { 'tls-cert': this.path(`${name}.crt`), 'tls-key': this.path(`${name}.key`) };
  }

  /** All flags, with client certificates required. */
  flags(name: string): Readonly<Record<string, string>> {
    const clients = { 'tls-client-ca': this.path('ca.crt'), 'tls-client-certificates': 'required' };
    return {
      ...this.peerFlags(name),
      ...this.clientFlags(name),
      ...clients,
      'tls-client-revoked': this.path('ca.crl'),
    };
  }

  /** For the SDK. */
  tlsOf(user: string): ConnectionOptions {
    const name = `client-${user}`;
    return { ca: this.text('ca.crt'), cert: this.text(`${name}.crt`), key: this.text(`${name}.key`) };
  }

  /** For commands. */
  argumentsOf(user: string): readonly string[] {
    const name = `client-${user}`;
    const files = [this.path('ca.crt'), this.path(`${name}.crt`), this.path(`${name}.key`)];
    return ['--cacert', '--cert', '--key'].flatMap((flag, i) => [flag, files[i] ?? '']);
  }

  close(): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}
