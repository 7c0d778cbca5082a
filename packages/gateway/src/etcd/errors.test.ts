import { ERROR_TABLE, type ErrorCode, ServiceError } from '@remora/base';
import { describe, expect, it } from 'vitest';
import { etcdStatus, remoraStatus } from './errors.ts';

describe('etcdStatus', () => {
  const rows: readonly { code: ErrorCode; status: number; message: string }[] = [
    { code: 'EMPTY_KEY', status: 3, message: 'etcdserver: key is not provided' },
    { code: 'DUPLICATE_KEY', status: 3, message: 'etcdserver: duplicate key given in txn request' },
    { code: 'TOO_MANY_OPERATIONS', status: 3, message: 'etcdserver: too many operations in txn request' },
    { code: 'REQUEST_TOO_LARGE', status: 3, message: 'etcdserver: request is too large' },
    { code: 'COMPACTED', status: 11, message: 'etcdserver: mvcc: required revision has been compacted' },
    { code: 'FUTURE_REVISION', status: 11, message: 'etcdserver: mvcc: required revision is a future revision' },
    { code: 'LEASE_NOT_FOUND', status: 5, message: 'etcdserver: requested lease not found' },
    { code: 'LEASE_EXISTS', status: 9, message: 'etcdserver: lease already exists' },
    { code: 'LEASE_TTL_TOO_LARGE', status: 11, message: 'etcdserver: too large lease TTL' },
    { code: 'RESOURCE_EXHAUSTED', status: 8, message: 'etcdserver: too many requests' },
    { code: 'NOT_LEADER', status: 14, message: 'etcdserver: leader changed' },
    { code: 'UNAVAILABLE', status: 14, message: 'etcdserver: no leader' },
    { code: 'DEADLINE_EXCEEDED', status: 14, message: 'etcdserver: request timed out' },
    { code: 'UNKNOWN_OUTCOME', status: 14, message: 'etcdserver: request timed out' },
    { code: 'RESULT_LOST', status: 2, message: 'our own text' },
    { code: 'INTERNAL', status: 13, message: 'our own text' },
  ];
  for (const { code, status, message } of rows) {
    it(`${code} is what clientv3 knows it as`, () => {
      expect(etcdStatus(new ServiceError(code, 'our own text'))).toEqual({ status, message });
    });
  }

  it('what was applied, or may have been, never has a status that means a refusal', () => {
    const refusals = [3, 5, 6, 7, 8, 9, 10, 11, 12, 16];
    for (const code of Object.keys(ERROR_TABLE) as ErrorCode[]) {
      const error = new ServiceError(code, 'x');
      if (!error.mayBeApplied) continue;
      expect(refusals).not.toContain(etcdStatus(error).status);
      expect(refusals).not.toContain(remoraStatus(error).status);
    }
  });

  it('INVALID_ARGUMENT says with its details which of etcd’s errors it is', () => {
    const error = new ServiceError('INVALID_ARGUMENT', 'x', { details: { etcd: 'keyNotFound' } });
    expect(etcdStatus(error)).toEqual({ status: 3, message: 'etcdserver: key not found' });
    expect(etcdStatus(new ServiceError('INVALID_ARGUMENT', 'x'))).toEqual({ status: 3, message: 'x' });
  });

  it('a node that takes in no values for want of room says what etcd says without space', () => {
    const error = new ServiceError('RESOURCE_EXHAUSTED', 'x', { details: { etcd: 'noSpace' } });
    expect(etcdStatus(error)).toEqual({ status: 8, message: 'etcdserver: mvcc: database space exceeded' });
  });
});
