/**
 * Stands before the peer port of a node for one gateway, and passes on their links frame by frame.
 *
 * LP1. Frames of one link are passed on in their order, each at most once, and none behind one that was held back.
 * LP2. What was passed on before the gateway ended reaches the node, as it would have without the proxy.
 */
import {
  Client,
  credentials,
  type handleBidiStreamingCall,
  type Metadata,
  Metadata as MetadataOf,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type StatusObject,
} from '@grpc/grpc-js';
import type { Bytes } from '@remora/base';
import { CHANNEL_OPTIONS, RPC_PATH, rawBytes } from '@remora/protocol';

/** Told of each frame before it is passed on. Whether it may be. */
export interface FrameEar {
  toNode(frame: Bytes): boolean;
  toGateway(frame: Bytes): boolean;
}

export interface LinkProxyOptions {
  /** The node's peer port, `host:port`. */
  readonly target: string;
  readonly host: string;
  /** Where the gateway dials instead. */
  readonly port: number;
  /** Called for each link that the gateway opens. */
  readonly listen: () => FrameEar;
}

type Stream = ServerDuplexStream<Bytes, Bytes>;

const OPTIONS = { ...CHANNEL_OPTIONS, 'grpc.use_local_subchannel_pool': 1 } as const;
const IDENTITY = /^remora-/;

export class LinkProxy {
  readonly address: string;
  readonly #server = new Server(CHANNEL_OPTIONS);
  readonly #options: LinkProxyOptions;

  constructor(options: LinkProxyOptions) {
    this.#options = options;
    this.address = `${options.host}:${options.port}`;
    const open: handleBidiStreamingCall<Bytes, Bytes> = (stream) => this.#pass(stream);
    const method = {
      ...{ path: RPC_PATH, requestStream: true, responseStream: true },
      ...{ requestSerialize: rawBytes.serialize, requestDeserialize: rawBytes.deserialize },
      ...{ responseSerialize: rawBytes.serialize, responseDeserialize: rawBytes.deserialize },
    };
    this.#server.addService({ open: method }, { open });
  }

  open(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.bindAsync(this.address, ServerCredentials.createInsecure(), (error) => {
        if (error === null) resolve();
        else reject(error);
      });
    });
  }

  close(): void {
    this.#server.forceShutdown();
  }

  #pass(fromGateway: Stream): void {
    const client = new Client(this.#options.target, credentials.createInsecure(), OPTIONS);
    const identity = identityOf(fromGateway.metadata);
    const toNode = client.makeBidiStreamRequest(RPC_PATH, rawBytes.serialize, rawBytes.deserialize, identity);
    const ear = this.#options.listen();
    let over = false;
    const end = (): void => {
      over = true;
      toNode.end(); // LP2: not canceled, which would overtake what is on its way.
    };
    fromGateway.on('data', (frame: Bytes) => {
      if (over) return;
      if (ear.toNode(frame)) toNode.write(frame);
      else end(); // LP1.
    });
    for (const event of ['end', 'cancelled', 'error']) fromGateway.on(event, end);
    toNode.on('metadata', (metadata: Metadata) => fromGateway.sendMetadata(identityOf(metadata)));
    toNode.on('data', (frame: Bytes) => {
      if (over) return;
      if (ear.toGateway(frame)) fromGateway.write(frame);
      else end();
    });
    toNode.on('end', () => fromGateway.end());
    toNode.on('error', (error: Error & Partial<StatusObject>) => {
      const { code, details, metadata } = error;
      if (!over) fromGateway.emit('error', Object.assign(new Error(error.message), { code, details, metadata }));
    });
    toNode.on('status', () => client.close());
  }
}

/** Who somebody says to be; what gRPC says beside that is its own. */
function identityOf(metadata: Metadata): Metadata {
  const identity = new MetadataOf();
  for (const [key, value] of Object.entries(metadata.getMap())) if (IDENTITY.test(key)) identity.set(key, value);
  return identity;
}
