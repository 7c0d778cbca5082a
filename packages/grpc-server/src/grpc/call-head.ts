import type { RequestHead } from '../http2/request-head.ts';
import { httpBlock, statusBlock } from './header-blocks.ts';
import type { ServedMethod } from './method.ts';
import { STATUS } from './status.ts';
import { timeoutMs } from './timeout.ts';

/** What the header list of a request says about the call. It is kept with the list, which may begin many calls. */
export interface CallHead {
  readonly method: ServedMethod | undefined;
  /** What the request is answered at once; undefined if it is a call of a method that is served. */
  readonly refusal: Buffer | undefined;
  /** From `grpc-timeout`; undefined without. */
  readonly timeoutMs: number | undefined;
  readonly encoding: string;
}

const CONTENT_TYPE = /^application\/grpc(?:$|[;+])/;
const METHOD_NOT_ALLOWED = httpBlock(405);
const UNSUPPORTED_MEDIA_TYPE = httpBlock(415);

export function callHead(head: RequestHead, methods: ReadonlyMap<string, ServedMethod>): CallHead {
  let contentType = '';
  let encoding = 'identity';
  let timeout: string | undefined;
  for (const { name, value } of head.fields) {
    if (name === 'content-type') contentType = value;
    else if (name === 'grpc-timeout') timeout = value;
    else if (name === 'grpc-encoding') encoding = value;
  }
  const method = methods.get(head.path);
  const ms = timeout === undefined ? undefined : timeoutMs(timeout);
  const refused = (refusal: Buffer): CallHead => ({ method, refusal, timeoutMs: ms, encoding });
  if (head.method !== 'POST') return refused(METHOD_NOT_ALLOWED);
  if (!CONTENT_TYPE.test(contentType)) return refused(UNSUPPORTED_MEDIA_TYPE);
  if (method === undefined) {
    const message = `The server does not implement the method ${head.path.slice(0, 256)}`;
    return refused(statusBlock({ status: STATUS.unimplemented, message }, false));
  }
  if (timeout !== undefined && ms === undefined) {
    const message = `Invalid grpc-timeout value "${timeout.slice(0, 64)}"`;
    return refused(statusBlock({ status: STATUS.internal, message }, false));
  }
  return { method, refusal: undefined, timeoutMs: ms, encoding };
}
