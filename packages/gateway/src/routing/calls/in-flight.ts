/** What a gateway has begun and not ended. All of it is 0 when no client asks for anything: what stays is leaked. */
export interface BackendInFlight {
  /** Requests that are not answered, and whose client still waits. */
  calls: number;
  watches: number;
}

export function nothingInFlight(): BackendInFlight {
  return { calls: 0, watches: 0 };
}
