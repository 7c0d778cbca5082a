import type { Logger } from '@remora/base';

/** The form of a `traceparent` (W3C Trace Context); gateways ignore what has another one. */
const FORM = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Asks the program for its trace context. Whatever goes wrong there changes nothing about the request. */
export function traceparentOf(ask: () => string | undefined, logger: Logger): string | undefined {
  try {
    const text = ask();
    return typeof text === 'string' && FORM.test(text) ? text : undefined;
  } catch (error) {
    logger.warn({ error: String(error) }, 'traceContext threw an error; a request is not traced');
    return undefined;
  }
}
