import type { AuditReply } from '@remora/protocol';
import { AUDITS } from '../../admin/admin-needs.ts';
import type { CallInfo } from '../../calls.ts';
import type { AuditJson, AuditRecordJson } from '../json/audit.ts';
import { type Route, reading } from '../route.ts';
import { onlyThese, wholeNumberIn } from '../targets.ts';

/** As many as a node keeps. */
const LIMIT_MAX = 1_000;
const LIMIT = 100;
/** Time for the node that is asked. */
const TIMEOUT_MS = 5_000;

/** The newest records of the audit log, of this node or of another one. */
export const AUDIT_ROUTE: Route = reading('/v1/audit', async ({ backend, admin }, { principal, target }) => {
  backend.check(principal, AUDITS, 'readAudit');
  const { query } = target;
  onlyThese(query, ['node', 'before', 'limit']);
  const node = wholeNumberIn(query, 'node', { otherwise: backend.nodeId, min: 1, max: Number.MAX_SAFE_INTEGER });
  const before = wholeNumberIn(query, 'before', { otherwise: 0, min: 0, max: Number.MAX_SAFE_INTEGER });
  const limit = wholeNumberIn(query, 'limit', { otherwise: LIMIT, min: 1, max: LIMIT_MAX });
  const info: CallInfo = { timeoutMs: TIMEOUT_MS, callerMs: undefined, seen: { newest: 0 }, principal };
  return auditJson(node, await admin.audit({ node, before, limit }, info));
});

function auditJson(node: number, { isKept, records, more }: AuditReply): AuditJson {
  const last = records.at(-1);
  const next = more && last !== undefined ? { next: last.number } : {};
  return { node, isKept, records: records.map(recordJson), ...next };
}

function recordJson({ number, timeMs, method, action, decision, targets, ...record }: AuditReply['records'][number]) {
  const { principal, address, door, reason, requestId } = record;
  return {
    ...{ number, timeMs, ...(principal === undefined ? {} : { principal }), method },
    ...{ ...(address === undefined ? {} : { address }), ...(door === undefined ? {} : { door }), action },
    ...{ decision: decision as AuditRecordJson['decision'], targets },
    ...(reason === undefined ? {} : { reason }),
    ...(requestId === undefined ? {} : { requestId }),
  } satisfies AuditRecordJson;
}
