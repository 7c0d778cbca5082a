/** W3C Trace Context (https://www.w3.org/TR/trace-context/): the header `traceparent`. */

export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** The caller's span: 16 hexadecimal digits. */
  readonly spanId: string;
  /** The caller records the trace. */
  readonly isSampled: boolean;
}

const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const SAMPLED = 1;

/** Undefined for what is no context: the standard wants it to be ignored. Later versions may be longer. */
export function parseTraceparent(text: string): TraceContext | undefined {
  const [, version = '', traceId = '', spanId = '', flags = '', more] = FORM.exec(text) ?? [];
  if (version === '' || version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0 };
}
