import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { devCertificates } from './certificates.ts';

const DAY_MS = 86_400_000;
const dirs: string[] = [];
afterEach(() => {
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true, force: true });
});

function newDirectory(): string {
  const dir = mkdtempSync(join(tmpdir(), 'remora-dev-certs-'));
  dirs.push(dir);
  return dir;
}

test('every flag of a node and every file of a client leads to a file that others cannot read', async () => {
  const { flagsOf, client } = await devCertificates(newDirectory(), ['n1', 'n2'], Date.now());
  const { 'tls-client-certificates': required, ...files } = flagsOf('n2');
  expect(required).toBe('required');
  for (const path of [...Object.values(files), ...Object.values(client)]) {
    expect(readFileSync(path, 'utf8')).toContain('-----BEGIN ');
    expect(statSync(path).mode & 0o077, path).toBe(0);
  }
});

test('certificates stay as long as most of their time is left; then they are made again by the same authorities', async () => {
  const dir = newDirectory();
  const at = async (days: number) => {
    const { flagsOf, client } = await devCertificates(dir, ['n1'], Date.now() + days * DAY_MS);
    const paths = [client.cacert, flagsOf('n1')['tls-peer-ca'] ?? '', client.cert, flagsOf('n1')['tls-cert'] ?? ''];
    return paths.map((path) => readFileSync(path, 'utf8'));
  };
  const [ca, peerCa, cert, nodeCert] = await at(0);
  expect(await at(100)).toEqual([ca, peerCa, cert, nodeCert]);
  const later = await at(200);
  expect(later.slice(0, 2)).toEqual([ca, peerCa]);
  expect(later[2]).not.toBe(cert);
  expect(later[3]).not.toBe(nodeCert);
});
