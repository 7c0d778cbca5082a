import { asCount, asFields, asText, invalid } from '../../src/internal/codec/check.ts';
import type { Method } from '../../src/rpc/rpc.ts';

/** Small methods for the tests of RPC. */
export const echo: Method<string, string> = {
  name: 'test.echo',
  callers: 'nodes',
  encodeRequest: (text) => text,
  decodeRequest: (raw) => asText(raw, 'text'),
  encodeReply: (text) => text,
  decodeReply: (raw) => asText(raw, 'text'),
};

export const silent: Method<string, string> = { ...echo, name: 'test.silent' };

/** Streams the numbers from 0 up to what the request says. */
export const countTo: Method<number, number> = {
  name: 'test.countTo',
  callers: 'nodes',
  encodeRequest: (n) => [n],
  decodeRequest: (raw) => asCount(asFields(raw, 1, 'count')[0], 'count'),
  encodeReply: (n) => n,
  decodeReply: (raw) => {
    if (typeof raw !== 'number') throw invalid('number');
    return raw;
  },
};
