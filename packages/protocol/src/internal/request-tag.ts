import { createHash } from 'node:crypto';

const TAG_CHARACTERS = 16;

/**
 * Names a request in logs and traces, alike at every node. The id itself stays a secret of its client: a caller who
 * knows it can ask for the outcome, which may have values.
 */
export function requestTag(requestId: string): string {
  return requestId === '' ? '' : createHash('sha256').update(requestId).digest('hex').slice(0, TAG_CHARACTERS);
}
