import { type ClientDuplexStream, Metadata, type ServerDuplexStream, type StatusObject } from '@grpc/grpc-js';
import { type Bytes, ERROR_TABLE, isErrorCode, ServiceError } from '@remora/base';
import { FRAME_BYTES_MAX, type FrameLink, type FrameReceiver } from '../link.ts';

/**
 * Frames over one gRPC bidirectional stream. A frame is one gRPC message, its bytes as they are (`rawBytes`) or in a
 * protobuf wrapper; that is the service definition's choice.
 */

/** Trailer that carries our error code when a stream is refused or ended. */
export const CODE_KEY = 'remora-code';

export const rawBytes = {
  serialize: (frame: Bytes): Buffer => Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength),
  deserialize: (bytes: Buffer): Bytes => bytes,
};

/** Shared by clients and servers: noticing dead peers, and frames as large as ours. */
export const CHANNEL_OPTIONS = {
  'grpc.max_receive_message_length': FRAME_BYTES_MAX,
  'grpc.max_send_message_length': FRAME_BYTES_MAX,
  'grpc.keepalive_time_ms': 5_000,
  'grpc.keepalive_timeout_ms': 3_000,
  'grpc.keepalive_permit_without_calls': 1,
  'grpc.initial_reconnect_backoff_ms': 50,
  'grpc.min_reconnect_backoff_ms': 50,
  'grpc.max_reconnect_backoff_ms': 1_000,
} as const;

/** The dialling end. `verify` looks at the server's first metadata: the link opens only when it returns nothing. */
export function clientLink(
  stream: ClientDuplexStream<Bytes, Bytes>,
  verify: (metadata: Metadata) => ServiceError | undefined,
): FrameLink {
  let receiver: FrameReceiver | undefined;
  let over = false;

  function end(error: ServiceError): void {
    if (over) return;
    over = true;
    receiver?.onClose(error);
  }
  stream.on('metadata', (metadata) => {
    if (over) return;
    const refusal = verify(metadata);
    if (refusal === undefined) return receiver?.onOpen();
    end(refusal);
    stream.cancel();
  });
  stream.on('data', (frame: Bytes) => {
    if (!over) receiver?.onFrame(frame);
  });
  stream.on('drain', () => {
    if (!over) receiver?.onDrain();
  });
  stream.on('error', (error: Error & Partial<StatusObject>) => end(fromStatus(error)));
  stream.on('end', () => end(new ServiceError('UNAVAILABLE', 'the peer ended the connection')));

  return {
    start(attached) {
      receiver = attached;
    },
    send: (frame) => !over && stream.write(frame),
    close() {
      if (over) return;
      over = true;
      stream.cancel();
    },
  };
}

/** The accepting end; the handshake has been checked before. */
export function serverLink(stream: ServerDuplexStream<Bytes, Bytes>): FrameLink {
  let receiver: FrameReceiver | undefined;
  let over = false;

  function end(reason: string): void {
    if (over) return;
    over = true;
    receiver?.onClose(new ServiceError('UNAVAILABLE', reason));
  }
  stream.on('data', (frame: Bytes) => {
    if (!over) receiver?.onFrame(frame);
  });
  stream.on('drain', () => {
    if (!over) receiver?.onDrain();
  });
  stream.on('cancelled', () => end('the peer is gone'));
  stream.on('error', (error: Error) => end(error.message));
  stream.on('end', () => {
    end('the peer ended the connection');
    stream.end();
  });

  return {
    start(attached) {
      receiver = attached;
      attached.onOpen();
    },
    send: (frame) => !over && stream.write(frame),
    close(reason) {
      if (over) return;
      over = true;
      refuseStream(stream, reason ?? new ServiceError('UNAVAILABLE', 'the server is stopping'));
    },
  };
}

/** Ends a stream with a status that carries our code. */
export function refuseStream(stream: ServerDuplexStream<Bytes, Bytes>, reason: ServiceError): void {
  const metadata = new Metadata();
  metadata.set(CODE_KEY, reason.code);
  const code = ERROR_TABLE[reason.code].grpc;
  stream.emit('error', Object.assign(new Error(reason.message), { code, details: reason.message, metadata }));
}

function fromStatus(error: Error & Partial<StatusObject>): ServiceError {
  const code = metadataText(error.metadata, CODE_KEY);
  const message = error.details ?? error.message;
  return new ServiceError(isErrorCode(code) ? code : 'UNAVAILABLE', message, { cause: error });
}

export function metadataText(metadata: Metadata | undefined, key: string): string {
  const value = metadata?.get(key)[0];
  return typeof value === 'string' ? value : '';
}
