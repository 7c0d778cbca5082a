import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { type ServerFlags, serversOf } from './servers.ts';

const dir = mkdtempSync(join(tmpdir(), 'remora-servers-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

function file(name: string): string {
  const path = join(dir, name);
  writeFileSync(path, `content of ${name}`);
  return path;
}

const [cacert, cert, certKey] = [file('ca'), file('cert'), file('key')];

test('the scheme decides about TLS, and a file for TLS does without a scheme', () => {
  expect(serversOf({ endpoints: '127.0.0.1:7480,http://[::1]:7480/' })).toEqual({
    endpoints: ['127.0.0.1:7480', '[::1]:7480'],
    tls: undefined,
  });
  expect(serversOf({ endpoints: 'https://db1:7480' })).toEqual({ endpoints: ['db1:7480'], tls: {} });
  expect(serversOf({ endpoints: 'db1:7480', cacert })).toEqual({
    endpoints: ['db1:7480'],
    tls: { ca: 'content of ca' },
  });
  expect(serversOf({ endpoints: 'https://db1:7480', cacert, cert, certKey }).tls).toEqual({
    ca: 'content of ca',
    cert: 'content of cert',
    key: 'content of key',
  });
});

test.each<{ name: string; flags: ServerFlags; says: string }>([
  { name: 'no endpoint', flags: { endpoints: '' }, says: 'give at least one' },
  { name: 'both schemes', flags: { endpoints: 'http://a:1,https://b:1' }, says: 'they mix http:// and https://' },
  { name: 'http:// with a file for TLS', flags: { endpoints: 'http://a:1', cacert }, says: '--cacert is given' },
  { name: 'a certificate without its key', flags: { endpoints: 'https://a:1', cert }, says: 'give both, or none' },
  { name: 'a key without its certificate', flags: { endpoints: 'https://a:1', certKey }, says: 'give both, or none' },
  {
    name: 'a missing file',
    flags: { endpoints: 'https://a:1', cacert: '/absent/ca' },
    says: '--cacert /absent/ca: it cannot be read: ENOENT',
  },
])('$name is refused, with what to do', ({ flags, says }) => {
  expect(() => serversOf(flags)).toThrow(says);
});
