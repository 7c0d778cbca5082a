import { ServiceError } from '@remora/base';
import { expect, test } from 'vitest';
import { SESSION_CODEC } from './session-codec.ts';

test('a heartbeat without a confirmation is answered; one whose credentials do not count ends the stream', () => {
  const request = { session: undefined, sequence: 3n };
  const failed = (code: 'UNAVAILABLE' | 'PERMISSION_DENIED' | 'UNAUTHENTICATED') =>
    SESSION_CODEC.failed(request, new ServiceError(code, 'no'))?.errorCode;
  expect(failed('UNAVAILABLE')).toBe('UNAVAILABLE');
  expect(failed('PERMISSION_DENIED')).toBe('PERMISSION_DENIED');
  expect(failed('UNAUTHENTICATED')).toBeUndefined();
});
