/** Errors of the HTTP API, and what an operator can do about them. */
interface ErrorBody {
  readonly error?: { readonly code?: string; readonly message?: string; readonly retry?: string } | string;
}

export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  /** Further fields of the body: the present state of a changed key. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(status: number, code: string, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

/** No answer came: the node is down, or the network. */
export const UNREACHABLE = 'UNREACHABLE';

export function errorOf(status: number, body: unknown): ApiError {
  const { error } = (typeof body === 'object' && body !== null ? body : {}) as ErrorBody;
  if (typeof error === 'string') return new ApiError(status, codeOf(status), error);
  const { code = codeOf(status), message = `the node answered with status ${status}`, ...details } = error ?? {};
  return new ApiError(status, code, message, details);
}

function codeOf(status: number): string {
  return status === 404 ? 'NOT_FOUND' : status === 503 ? 'UNAVAILABLE' : 'INTERNAL';
}

const ADVICE: Readonly<Record<string, string>> = {
  UNREACHABLE: 'The node does not answer. The page continues when it is back; the other gateways are listed above.',
  UNAVAILABLE: 'Nothing was changed. Try again in a few seconds; Overview shows what is wrong with the cluster.',
  UNAUTHENTICATED: 'Log in, then try again.',
  PERMISSION_DENIED: 'Ask an administrator for this permission, or log in as another user.',
  RESOURCE_EXHAUSTED: 'Try again in a few seconds, or open the console of another gateway.',
  DEADLINE_EXCEEDED: 'Try again; Overview shows if ranges have no leader.',
  UNKNOWN_OUTCOME: 'The change may have been made. Reload and look before you repeat it.',
  RESULT_LOST: 'The change was made, but its result is lost. Reload to see the present state.',
  COMPACTED: 'This revision is deleted. Read the present state.',
  LOCK_NOT_HELD: 'The lock is free already. Reload to see the present state.',
  SESSION_EXPIRED: 'The session has ended already, and its locks are released.',
  KEY_CHANGED: 'Somebody else has changed the key since you loaded it. Look at the present value, then decide.',
  INTERNAL: 'This is a defect. Please report it with the log of the node.',
  NOT_FOUND: 'It may be deleted, or this node may run an older release.',
};

export function adviceFor(error: unknown): string | undefined {
  return error instanceof ApiError ? ADVICE[error.code] : undefined;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
