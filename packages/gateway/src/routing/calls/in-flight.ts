/**
 * What a gateway has started and not ended. All counts are 0 when no client asks for anything; a remainder is a leak.
 */
export interface BackendInFlight {
  /** Requests without an answer whose clients still wait. */
  calls: number;
  watches: number;
}

export function nothingInFlight(): BackendInFlight {
  return { calls: 0, watches: 0 };
}
