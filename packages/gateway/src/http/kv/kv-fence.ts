import { DEFAULT_NAMESPACE, validateLockQuery } from '@remora/lock';
import type { LockCompare } from '@remora/protocol';
import { type Fields, invalid } from '../fields.ts';
import { refuse } from '../range-calls.ts';
import { type Target, text, wholeNumber } from '../targets.ts';

/** The parameters of a fence where a call has no body. */
export const FENCE_PARAMETERS = ['fenceNamespace', 'fenceName', 'fenceVersion'] as const;

/** The grant that has to hold its lock, of a body. @throws ServiceError INVALID_ARGUMENT */
export function fenceIn(fields: Fields | undefined): LockCompare | undefined {
  if (fields === undefined) return undefined;
  const namespace = fields.text('namespace') ?? DEFAULT_NAMESPACE;
  const name = fields.required('name', fields.bytes('name'));
  const version = fields.required('version', fields.integer('version'));
  fields.end();
  return checked({ lock: { namespace, name }, version });
}

/** The same, of a query. @throws ServiceError INVALID_ARGUMENT */
export function fenceAt(query: Target['query']): LockCompare | undefined {
  if (FENCE_PARAMETERS.every((parameter) => !query.has(parameter))) return undefined;
  const [name, namespace] = [query.get('fenceName'), query.get('fenceNamespace')];
  if (name === undefined) throw invalid('fenceName is missing: a fence is the name and the version of a lock');
  if (!query.has('fenceVersion')) throw invalid('fenceVersion is missing: send the `version` of the grant');
  return checked({
    lock: { namespace: namespace === undefined ? DEFAULT_NAMESPACE : text(namespace, 'fenceNamespace'), name },
    version: wholeNumber(query, 'fenceVersion', 0),
  });
}

function checked(fence: LockCompare): LockCompare {
  refuse(validateLockQuery({ type: 'check', checks: [fence] }));
  return fence;
}
