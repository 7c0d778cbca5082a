import { type ChannelCredentials, Client, Metadata, type ServiceDefinition } from '@grpc/grpc-js';
import { ServiceError } from '@remora/base';
import type { FrameLink } from '../../rpc/link.ts';
import { CHANNEL_OPTIONS, clientLink, metadataText } from '../../rpc/node/grpc-link.ts';
import { FRAME_BYTES_SOFT } from '../../rpc/outbox.ts';
import { decodePipeFrame, encodePipeFrame } from '../pipe-frame.ts';

/** The gRPC service `remora.v1.Pipe` with its one stream, as both ends use it. */
export const PIPE_PROTOCOL_VERSION = '1';
/** Metadata that names the version, from the client and back from the server. */
export const PIPE_VERSION_KEY = 'remora-pipe';
/** A gateway takes frames of this size, at least; the gRPC server ends a stream that brings a larger one. */
export const PIPE_FRAME_BYTES_MAX = 4 << 20;
/** Room in a frame for what is around keys and values. */
const FRAME_OVERHEAD_BYTES = 1 << 20;
/** The largest request that fits into a frame at any gateway, whatever came into the frame before it. */
export const PIPE_REQUEST_BYTES_MAX = PIPE_FRAME_BYTES_MAX - FRAME_BYTES_SOFT - FRAME_OVERHEAD_BYTES;

const OPEN_PATH = '/remora.v1.Pipe/Open';

/** The frames that a gateway takes whose requests hold at most this: many small requests, or a large one after them. */
export function pipeFrameBytesMax(requestBytesMax: number): number {
  return Math.max(PIPE_FRAME_BYTES_MAX, FRAME_BYTES_SOFT + requestBytesMax + FRAME_OVERHEAD_BYTES);
}

export const pipeDefinition = {
  open: {
    path: OPEN_PATH,
    requestStream: true,
    responseStream: true,
    requestSerialize: encodePipeFrame,
    requestDeserialize: decodePipeFrame,
    responseSerialize: encodePipeFrame,
    responseDeserialize: decodePipeFrame,
  },
} as const satisfies ServiceDefinition;

/** Opens a Pipe to a gateway. The link opens when the gateway has answered with the same version. */
export function dialPipe(target: { readonly address: string }, credentials: ChannelCredentials): FrameLink {
  const client = new Client(target.address, credentials, { ...CHANNEL_OPTIONS, 'grpc.use_local_subchannel_pool': 1 });
  const metadata = new Metadata();
  metadata.set(PIPE_VERSION_KEY, PIPE_PROTOCOL_VERSION);
  const stream = client.makeBidiStreamRequest(OPEN_PATH, encodePipeFrame, decodePipeFrame, metadata);
  stream.on('status', () => client.close());
  return clientLink(stream, (answer) => {
    const version = metadataText(answer, PIPE_VERSION_KEY);
    if (version === PIPE_PROTOCOL_VERSION) return undefined;
    return new ServiceError('UNIMPLEMENTED', `${target.address} does not speak Pipe version ${PIPE_PROTOCOL_VERSION}`);
  });
}
