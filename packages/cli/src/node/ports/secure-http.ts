import type { Socket } from 'node:net';
import type { SecurePort } from '@remora/base';

const TLS_RECORD = 0x16;

/**
 * Lets TLS begin on a connection to an HTTP port, or leaves it in plain text where the port allows that: the first byte
 * tells. A connection that may not use the port gets an answer that says why. One that sends nothing is closed after
 * `timeoutMs`.
 */
export function openHttp(
  socket: Socket,
  secure: SecurePort,
  { timeoutMs, take }: { readonly timeoutMs: number; readonly take: (socket: Socket) => void },
): void {
  const timer = setTimeout(() => socket.destroy(), timeoutMs);
  socket.on('error', () => undefined); // a broken connection is closed, which is enough
  socket.once('close', () => clearTimeout(timer));
  socket.once('data', (begun: Buffer) => {
    socket.pause();
    socket.unshift(begun);
    if (begun[0] !== TLS_RECORD) {
      clearTimeout(timer);
      if (secure.isRequired) return refuse(socket, 400, 'this port requires TLS; use https://');
      return take(socket);
    }
    secure.accept(socket, (secured) => {
      clearTimeout(timer);
      if (secured.refusal === undefined) take(secured.socket);
      else refuse(secured.socket, 403, secured.refusal);
    });
  });
}

/** Sent when the request has begun to arrive, as clients expect. */
function refuse(socket: Socket, status: 400 | 403, reason: string): void {
  const body = `${JSON.stringify({ error: reason })}\n`;
  const head = [
    `HTTP/1.1 ${status} ${status === 400 ? 'Bad Request' : 'Forbidden'}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ];
  const timer = setTimeout(() => socket.destroy(), REFUSAL_MS);
  socket.once('close', () => clearTimeout(timer));
  socket.once('data', () => socket.end([...head, '', body].join('\r\n')));
  socket.resume();
}

/** How long a refused client may take to send the beginning of its request. */
const REFUSAL_MS = 5_000;
