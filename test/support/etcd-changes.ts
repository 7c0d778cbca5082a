import type { ResponseOp } from '@remora/protocol/etcd';

/** Whether a part of a transaction changed something. */
export function changed({ response }: ResponseOp): boolean {
  switch (response?.$case) {
    case 'responsePut':
      return true;
    case 'responseDeleteRange':
      return Number(response.value.deleted) > 0;
    case 'responseTxn':
      return response.value.responses.some(changed);
    default:
      return false;
  }
}
