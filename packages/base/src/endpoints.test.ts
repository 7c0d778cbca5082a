import { expect, test } from 'vitest';
import { readEndpoints, srvNameOf } from './endpoints.ts';

test.each([
  { given: ['a:1'], expected: { addresses: ['a:1'], tls: undefined } },
  { given: [' a:1 ', '', 'a:1/', '[::1]:2'], expected: { addresses: ['a:1', '[::1]:2'], tls: undefined } },
  { given: ['http://a:1/', 'b:2'], expected: { addresses: ['a:1', 'b:2'], tls: false } },
  { given: ['b:2', 'https://a:1'], expected: { addresses: ['b:2', 'a:1'], tls: true } },
  { given: ['https://[::1]:1', 'https://a:1'], expected: { addresses: ['[::1]:1', 'a:1'], tls: true } },
])('$given are read with what their schemes say', ({ given, expected }) => {
  expect(readEndpoints(given)).toEqual(expected);
});

test.each([
  { given: [], says: 'give at least one' },
  { given: ['a'], says: "'a' is not a host:port address" },
  { given: ['https://a'], says: "'https://a' is not a host:port address" },
  { given: ['https://a:1/path'], says: 'is not a host:port address' },
  { given: ['https://user@a:1'], says: 'is not a host:port address' },
  { given: ['grpc://a:1'], says: 'has the scheme grpc' },
  { given: ['HTTPS://a:1'], says: 'has the scheme HTTPS' },
  { given: ['constructor://a:1'], says: 'has the scheme constructor' },
  { given: ['http://a:1', 'https://b:1'], says: 'they mix http:// and https://' },
])('$given are refused', ({ given, says }) => {
  expect(() => readEndpoints(given)).toThrow(says);
});

test('names with SRV records are read where they are allowed, and say nothing about TLS', () => {
  const given = ['srv://remora.example.com/', 'https://a:1'];
  expect(readEndpoints(given, { srv: true })).toEqual({ addresses: ['srv://remora.example.com', 'a:1'], tls: true });
  expect(() => readEndpoints(given)).toThrow('has the scheme srv');
});

test.each(['srv://', 'srv://remora', 'srv://a.example:7480', 'srv://a..b', 'srv://a b.c'])('%s is refused', (given) => {
  expect(() => readEndpoints([given], { srv: true })).toThrow('is not a name with SRV records');
});

test.each([
  { address: 'srv://remora.example.com', name: '_remora._tcp.remora.example.com' },
  { address: 'srv://_locks._tcp.example.com', name: '_locks._tcp.example.com' },
  { address: 'a:1', name: undefined },
])('the SRV records for $address are those of $name', ({ address, name }) => {
  expect(srvNameOf(address)).toBe(name);
});
