import { X509Certificate } from 'node:crypto';
import { chmodSync } from 'node:fs';
import { checkTls, looseModeOf, readTlsFiles, type TlsFiles, type TlsMaterial } from '@remora/base/node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeRevocationList, readRevocationLists } from '../../src/certs/revocation-lists.ts';
import { expired, fresh, notYetValid, TestAuthority, TestFiles } from './authority.ts';

const files = new TestFiles();
let ca: TestAuthority;
let other: TestAuthority;

beforeAll(async () => {
  [ca, other] = [await TestAuthority.make(), await TestAuthority.make('Other CA')];
  files.writePair('good', await ca.peer('n1'));
  files.writePair('other', await other.peer('n1'));
  files.writePair('expired', await ca.peer('n1', expired()));
  files.writePair('early', await ca.peer('n1', notYetValid()));
  files.write('ca.crt', ca.certificate);
  files.write('damaged.crt', ca.certificate.replace(/[A-Z]{4}/, '????'));
  files.write('noise.pem', 'not PEM');
});
afterAll(() => files.close());

interface Names {
  readonly certificate?: string;
  readonly key?: string;
  readonly ca?: string;
  readonly revocations?: string;
  readonly isMutual?: boolean;
}

function named({ certificate = 'good.crt', key = 'good.key', ca, revocations, isMutual = false }: Names): TlsFiles {
  const at = (name: string, option: string) => ({ path: `${files.dir}/${name}`, option });
  return {
    certificate: at(certificate, '--cert'),
    key: at(key, '--key'),
    ...(ca === undefined ? {} : { ca: at(ca, '--ca') }),
    ...(revocations === undefined ? {} : { revocations: at(revocations, '--revoked') }),
    isMutual,
  };
}

async function check(names: Names): Promise<TlsMaterial> {
  const given = named(names);
  const deps = { nowMs: Date.now(), readRevocations: readRevocationLists };
  return checkTls(given, await readTlsFiles(given), deps);
}

test('files that fit together are used', async () => {
  const { certificate, expiresMs, trust } = await check({ ca: 'ca.crt', isMutual: true });
  expect(certificate.subject).toBe('CN=n1');
  expect(expiresMs).toBeGreaterThan(Date.now());
  expect(trust.authorities).toHaveLength(1);
});

const rows: readonly { name: string; given: Names; says: RegExp }[] = [
  {
    name: 'a missing file',
    given: { certificate: 'absent.crt' },
    says: /--cert .*absent\.crt: it cannot be read: ENOENT/,
  },
  {
    name: 'a file without a certificate',
    given: { certificate: 'noise.pem' },
    says: /--cert .*it contains no certificate/,
  },
  { name: 'a damaged certificate', given: { certificate: 'damaged.crt' }, says: /--cert .*damaged/ },
  { name: 'a file without a key', given: { key: 'noise.pem' }, says: /--key .*it contains no private key/ },
  {
    name: 'the key of another certificate',
    given: { key: 'other.key' },
    says: /--key .*not the key of the certificate in .*good\.crt/,
  },
  {
    name: 'an expired certificate',
    given: { certificate: 'expired.crt', key: 'expired.key' },
    says: /--cert .*expired at .*clock says/,
  },
  {
    name: 'a certificate of tomorrow',
    given: { certificate: 'early.crt', key: 'early.key' },
    says: /--cert .*not valid before .*clock says/,
  },
  {
    name: 'a certificate of an authority that the other ends do not trust',
    given: { certificate: 'other.crt', key: 'other.key', ca: 'ca.crt', isMutual: true },
    says: /--cert .*authority that is not trusted here \(--ca .*ca\.crt\)/,
  },
  { name: 'authorities without a certificate', given: { ca: 'noise.pem' }, says: /--ca .*it contains no certificate/ },
  {
    name: 'a revocation list that is none',
    given: { ca: 'ca.crt', revocations: 'noise.pem' },
    says: /--revoked .*no revocation list/,
  },
];
test.each(rows)('$name is an error that names the option, the file and the fault (TF2)', async ({ given, says }) => {
  await expect(check(given)).rejects.toThrow(says);
});

test('a revocation list of another authority is an error', async () => {
  const list = await makeRevocationList([], undefined, other.credentials, fresh());
  files.write('foreign.crl', list);
  await expect(check({ ca: 'ca.crt', revocations: 'foreign.crl' })).rejects.toThrow(/none of the trusted authorities/);
});

test('a node whose own certificate is revoked does not start', async () => {
  const { certificate } = await check({});
  files.write('own.crl', await makeRevocationList([certificate], undefined, ca.credentials, fresh()));
  await expect(check({ ca: 'ca.crt', revocations: 'own.crl', isMutual: true })).rejects.toThrow(/is revoked/);
});

test('a revocation list that is made again keeps what the one before it revokes', async () => {
  const [a, b] = await Promise.all([ca.client('a'), ca.client('b')]);
  const [certificateA, certificateB] = [new X509Certificate(a.certificate), new X509Certificate(b.certificate)];
  const first = await makeRevocationList([certificateA], undefined, ca.credentials, fresh());
  const second = await makeRevocationList([certificateB], first, ca.credentials, fresh());
  const [list] = await readRevocationLists(second, [new X509Certificate(ca.certificate)]);
  expect(list?.serials.size).toBe(2);
});

test('the mode of a key that others may read is known', async () => {
  const given = named({});
  expect(await looseModeOf(given)).toBeUndefined();
  chmodSync(given.key.path, 0o644);
  expect(await looseModeOf(given)).toBe('644');
  chmodSync(given.key.path, 0o600);
});
