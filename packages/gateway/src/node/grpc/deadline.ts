import type { Deadline } from '@grpc/grpc-js';

/** Returns the time until a call's deadline, in ms and at least 0; undefined if it has none. */
export function untilDeadline(deadline: Deadline): number | undefined {
  const at = typeof deadline === 'number' ? deadline : deadline.getTime();
  return Number.isFinite(at) ? Math.max(0, at - Date.now()) : undefined;
}
