import { afterAll, expect, test } from 'vitest';
import { TestAuthority, TestFiles } from '../../test/tls/authority.ts';
import { type ServerFlags, serversOf } from './servers.ts';

const files = new TestFiles();
afterAll(() => files.close());

const authority = await TestAuthority.make();
const ann = await authority.client('ann');
const cacert = files.write('ca.crt', authority.certificate);
const { certificate: cert, key: certKey } = files.writePair('ann', ann);
const otherKey = files.writePair('bob', await authority.client('bob')).key;
const noise = files.write('noise', 'nothing of that kind');

test('the scheme decides about TLS, and a file for TLS does without a scheme', () => {
  expect(serversOf({ endpoints: '127.0.0.1:7480,http://[::1]:7480/' })).toEqual({
    endpoints: ['127.0.0.1:7480', '[::1]:7480'],
    tls: undefined,
  });
  expect(serversOf({ endpoints: 'https://db1:7480' })).toEqual({ endpoints: ['db1:7480'], tls: {} });
  expect(serversOf({ endpoints: 'db1:7480', cacert })).toEqual({
    endpoints: ['db1:7480'],
    tls: { ca: authority.certificate },
  });
  expect(serversOf({ endpoints: 'https://db1:7480', cacert, cert, certKey }).tls).toEqual({
    ca: authority.certificate,
    cert: ann.certificate,
    key: ann.key,
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
  {
    name: 'the key of another certificate',
    flags: { endpoints: 'https://a:1', cert, certKey: otherKey },
    says: `--key ${otherKey} is not the key of the certificate in --cert ${cert}`,
  },
  {
    name: 'a file without a certificate',
    flags: { endpoints: 'https://a:1', cert: noise, certKey },
    says: `--cert ${noise}: it contains no certificate`,
  },
  {
    name: 'a file without a key',
    flags: { endpoints: 'https://a:1', cert, certKey: noise },
    says: `--key ${noise}: it contains no private key`,
  },
  {
    name: 'authorities without a certificate',
    flags: { endpoints: 'https://a:1', cacert: noise },
    says: `--cacert ${noise}: it contains no certificate`,
  },
])('$name is refused, with what to do', ({ flags, says }) => {
  expect(() => serversOf(flags)).toThrow(says);
});
