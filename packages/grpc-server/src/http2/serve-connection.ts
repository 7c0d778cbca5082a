import { Connection, type ConnectionDeps, type StreamUser } from './connection.ts';
import { FrameHandlers } from './frame-handlers.ts';
import { FrameReader } from './frame-reader.ts';

/** Speaks HTTP/2 on a socket, from its first byte on. Bytes that were read before may have been put back on it. */
export function serveConnection(deps: ConnectionDeps, user: StreamUser): Connection {
  const connection = new Connection(deps);
  connection.start(new FrameReader(new FrameHandlers(connection, user, deps.timers)));
  return connection;
}
