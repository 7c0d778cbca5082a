import { expect, test } from 'vitest';
import { endpointsOf } from './connection.ts';

test('endpoints may say http://, and https:// is refused with what to do', () => {
  expect(endpointsOf('127.0.0.1:7480,http://[::1]:7480/')).toEqual(['127.0.0.1:7480', '[::1]:7480']);
  expect(() => endpointsOf('https://db1:7480')).toThrow(
    '--endpoints or REMORA_ENDPOINTS: the command line does not support TLS, so it cannot connect to https://',
  );
  expect(() => endpointsOf('')).toThrow('give at least one');
});
