import { type ChannelCredentials, Client, Metadata, type ServiceDefinition } from '@grpc/grpc-js';
import { type Bytes, ServiceError } from '@remora/base';
import type { FrameLink } from '../../rpc/link.ts';
import { CHANNEL_OPTIONS, clientLink, metadataText } from '../../rpc/node/grpc-link.ts';
import { decodePipeFrame, encodePipeFrame } from '../pipe-frame.ts';

/** The gRPC service `remora.v1.Pipe` with its one stream, as both ends use it. */
export const PIPE_PROTOCOL_VERSION = '1';
/** Metadata that names the version, from the client and back from the server. */
export const PIPE_VERSION_KEY = 'remora-pipe';
/** The server ends a stream that sends a larger frame: well-behaved clients begin a new one at 1 MiB. */
export const PIPE_FRAME_BYTES_MAX = 4 << 20;

const OPEN_PATH = '/remora.v1.Pipe/Open';

function decodeRequestFrame(bytes: Buffer): Bytes {
  if (bytes.length > PIPE_FRAME_BYTES_MAX) {
    throw new ServiceError('REQUEST_TOO_LARGE', `a frame holds at most ${PIPE_FRAME_BYTES_MAX} bytes`);
  }
  return decodePipeFrame(bytes);
}

export const pipeDefinition = {
  open: {
    path: OPEN_PATH,
    requestStream: true,
    responseStream: true,
    requestSerialize: encodePipeFrame,
    requestDeserialize: decodeRequestFrame,
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
