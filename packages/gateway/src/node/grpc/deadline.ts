import type { Deadline } from '@grpc/grpc-js';

/** Milliseconds until a call's deadline; undefined when it has none. At least 0. */
export function untilDeadline(deadline: Deadline): number | undefined {
  const at = typeof deadline === 'number' ? deadline : deadline.getTime();
  return Number.isFinite(at) ? Math.max(0, at - Date.now()) : undefined;
}
