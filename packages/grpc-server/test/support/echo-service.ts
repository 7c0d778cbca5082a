import type { Implementation } from '../../src/grpc/implementation.ts';

function method<Request extends boolean, Response extends boolean>(
  path: string,
  requestStream: Request,
  responseStream: Response,
) {
  const same = (bytes: Buffer): Buffer => bytes;
  return {
    path: `/test.Echo/${path}`,
    ...{ requestStream, responseStream },
    requestSerialize: same,
    requestDeserialize: (bytes: Buffer): Buffer => {
      if (bytes.toString('latin1') === 'undecodable') throw new Error('no such message');
      return bytes;
    },
    responseSerialize: same,
    responseDeserialize: same,
  };
}

/** A service whose messages are bytes. */
export const ECHO = {
  unary: method('Unary', false, false),
  down: method('Down', false, true),
  up: method('Up', true, false),
  both: method('Both', true, true),
} as const;

/** Answers with what it is asked. */
export const ECHOES: Implementation<typeof ECHO> = {
  unary: (call) => call.respond(Buffer.from(call.request)),
  down: (call) => {
    call.onRequest = (request) => {
      for (const octet of request) call.write(Buffer.from([octet]));
      call.end();
    };
  },
  up: (call) => {
    const parts: Buffer[] = [];
    call.onRequest = (request) => void parts.push(Buffer.from(request));
    call.onHalfClose = () => call.respond(Buffer.concat(parts));
  },
  both: (call) => {
    call.onRequest = (request) => void call.write(Buffer.from(request));
    call.onHalfClose = () => call.end();
  },
};
