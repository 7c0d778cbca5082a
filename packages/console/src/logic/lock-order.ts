interface Queue {
  readonly waiterCount: number;
  /** Callers that wait at the barrier. */
  readonly passing?: number;
}

export function queueLength({ waiterCount, passing = 0 }: Queue): number {
  return waiterCount + passing;
}

/** The locks with the longest queues first; those of one length stay in their order. */
export function longestQueueFirst<Lock extends Queue>(locks: readonly Lock[]): readonly Lock[] {
  return [...locks].sort((a, b) => queueLength(b) - queueLength(a));
}
