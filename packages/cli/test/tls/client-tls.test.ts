// A client's certificate that changes while its program runs (tls-files.ts of packages/client).
import { rmSync } from 'node:fs';
import { type Logger, silentLogger } from '@remora/base';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ClientTls } from '../../../client/src/node/tls-files.ts';
import type { Credentials } from '../../src/certs/make-certificate.ts';
import { TestAuthority, TestFiles } from './authority.ts';

const files = new TestFiles();
let authority: TestAuthority;
let first: Credentials;
let second: Credentials;
let warnings: string[];
let logger: Logger;

beforeAll(async () => {
  authority = await TestAuthority.make();
  [first, second] = [await authority.client('ada'), await authority.client('ada')];
});
afterAll(() => files.close());
beforeEach(() => {
  warnings = [];
  const warn = (fields: object): void => void warnings.push(JSON.stringify(fields));
  logger = { ...silentLogger, warn: warn as Logger['warn'] };
});

function tls(): ClientTls {
  const { certificate: certFile, key: keyFile } = files.writePair('ada', first);
  return new ClientTls({ caFile: files.write('ca.crt', authority.certificate), certFile, keyFile }, logger);
}

const certificateOf = ({ options }: ClientTls): string => String(options.cert);

test('a connection uses the files as they are when it is dialled (TF1)', () => {
  const used = tls();
  expect(certificateOf(used)).toBe(first.certificate);
  files.writePair('ada', second);
  expect(certificateOf(used)).toBe(second.certificate);
  expect(String(used.options.key)).toBe(second.key);
  expect(warnings).toEqual([]);
});

test('while certificate and key do not fit, the last good ones are used, and that is logged once (TF2)', () => {
  const used = tls();
  files.write('ada.crt', second.certificate);
  for (let i = 0; i < 3; i++) expect(certificateOf(used)).toBe(first.certificate);
  expect(String(used.options.key)).toBe(first.key);
  expect(warnings).toEqual([expect.stringContaining('ada.key is not the key of the certificate in')]);
  files.write('ada.key', second.key);
  expect(certificateOf(used)).toBe(second.certificate);
  expect(warnings).toHaveLength(1);
});

test('while a file is gone, or is no certificate, the last good ones are used (TF2)', () => {
  const used = tls();
  files.write('ada.crt', 'half');
  expect(certificateOf(used)).toBe(first.certificate);
  rmSync(files.write('ca.crt', ''));
  expect(certificateOf(used)).toBe(first.certificate);
  expect(String(used.options.ca)).toBe(authority.certificate);
  expect(warnings).toHaveLength(2);
});

test.each([
  { name: 'a certificate without key', options: { certFile: 'a' }, says: 'belong together' },
  { name: 'a file and contents', options: { caFile: 'a', ca: 'b' }, says: 'give either caFile or ca' },
  { name: 'a file that is not there', options: { caFile: '/no/such/file' }, says: '/no/such/file' },
  { name: 'an empty path', options: { caFile: '' }, says: 'tls.caFile: expected the path of a file' },
])('$name is refused', ({ options, says }) => {
  expect(() => new ClientTls(options, logger)).toThrow(says);
});
