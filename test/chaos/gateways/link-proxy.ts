/**
 * A proxy in front of a node's peer port, for one gateway. It forwards the gateway's links frame by frame.
 *
 * LP1. Frames of one link are forwarded in order, each at most once, and none after one that was held back.
 * LP2. Frames that were forwarded before the gateway ended reach the node, as they would without the proxy.
 */
import {
  type Bytes,
  dialFrames,
  type FramePort,
  type FrameStream,
  type Hello,
  nodeClock,
  openFramePort,
} from '@remora/base';
import { RPC_SERVICE } from '@remora/protocol';

/** Called for each frame before it is forwarded. Returns whether it may be forwarded. */
export interface FrameEar {
  toNode(frame: Bytes): boolean;
  toGateway(frame: Bytes): boolean;
}

export interface LinkProxyOptions {
  /** The node's peer port, `host:port`. */
  readonly target: string;
  readonly host: string;
  /** The port that the gateway dials instead. */
  readonly port: number;
  /** Called for each link that the gateway opens. */
  readonly listen: () => FrameEar;
}

const STREAM_OPTIONS = { clock: nodeClock() };

export class LinkProxy {
  readonly address: string;
  readonly #options: LinkProxyOptions;
  #port: FramePort | undefined;

  constructor(options: LinkProxyOptions) {
    this.#options = options;
    this.address = `${options.host}:${options.port}`;
  }

  async open(): Promise<void> {
    const { host, port } = this.#options;
    const service = { name: RPC_SERVICE, open: (hello: Hello, stream: FrameStream) => this.#pass(hello, stream) };
    this.#port = await openFramePort({ ...STREAM_OPTIONS, host, port, services: [service] });
  }

  close(): void {
    this.#port?.close();
  }

  #pass(hello: Hello, fromGateway: FrameStream): void {
    const ear = this.#options.listen();
    const toNode = dialFrames(this.#options.target, hello, STREAM_OPTIONS, {
      onHello: (answer) => fromGateway.sayHello(answer),
      onFrame(frame) {
        if (over) return;
        if (ear.toGateway(frame)) fromGateway.send(frame);
        else end();
      },
      onDrain() {},
      onEnd(reason) {
        if (!over) fromGateway.end(reason);
      },
    });
    let over = false;
    const end = (): void => {
      over = true;
      toNode.end(); // LP2: data in transit still arrives.
      fromGateway.end();
    };
    fromGateway.handle({
      onFrame(frame) {
        if (over) return;
        if (ear.toNode(frame)) toNode.send(frame);
        else end(); // LP1.
      },
      onDrain() {},
      onEnd: end,
    });
  }
}
