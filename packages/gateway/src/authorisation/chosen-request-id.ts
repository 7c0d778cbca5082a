import { createHmac } from 'node:crypto';
import type { Bytes } from '@remora/base';

/**
 * The id under which a command is remembered whose request id its client has chosen. It differs for each user, and
 * follows from a key that only nodes have. So no caller can choose an id under which another user's command is, or will
 * be, remembered, in whatever protocol.
 */
export function boundRequestId(requestId: string, user: string, key: Bytes): string {
  const digest = createHmac('sha256', key)
    .update(JSON.stringify(['request', user, requestId]))
    .digest('base64url');
  return `u.${digest}`;
}
