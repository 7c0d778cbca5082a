import type { IncomingMessage } from 'node:http';
import type { Identification } from '@remora/auth';
import type { ServiceError } from '@remora/base';
import { expect, test } from 'vitest';
import { httpPrincipal } from './http-principal.ts';

const identification = (isOff: boolean): Identification => ({
  isOff,
  identify: ({ token }) => (token === undefined ? undefined : { name: `owner of ${token}`, method: 'token' }),
  identifyByPassword: async ({ user, password, address }) => ({
    ...{ name: `${user} with ${password} from ${address}`, method: 'password' },
  }),
  logIn: async () => '',
  logInIfRight: async () => undefined,
  renewed: () => undefined,
});

const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;

const rows: readonly { readonly name: string; readonly header?: string; readonly found: string }[] = [
  { name: 'no header', found: 'nobody' },
  { name: 'a bearer token', header: 'Bearer r1.abc', found: 'owner of r1.abc' },
  { name: 'a scheme in lower case', header: 'bearer  r1.abc', found: 'owner of r1.abc' },
  { name: 'a token alone, as for etcd', header: 'r1.abc', found: 'owner of r1.abc' },
  { name: 'a password with a colon', header: basic('ada:p:w'), found: 'ada with p:w from 10.0.0.1' },
  { name: 'a user without a password', header: basic('ada'), found: 'UNAUTHENTICATED' },
  { name: 'another scheme', header: 'Digest username="ada"', found: 'UNAUTHENTICATED' },
  { name: 'a scheme without anything', header: '', found: 'UNAUTHENTICATED' },
];
test.each(rows)('$name', async ({ header, found }) => {
  const headers = { ...(header !== undefined && { authorization: header }), 'x-forwarded-user': 'root' };
  const request = { headers, socket: { remoteAddress: '10.0.0.1' } } as unknown as IncomingMessage;
  const told = await httpPrincipal(request, identification(false)).then(
    (principal) => principal?.name ?? 'nobody',
    (error: unknown) => (error as ServiceError).code,
  );
  expect(told).toBe(found);
  const whileOff = await httpPrincipal(request, identification(true));
  expect(whileOff?.name ?? 'nobody').toBe(found === 'UNAUTHENTICATED' ? 'nobody' : found);
});
