import {
  type CertificateNames,
  type DialOptions,
  dialFrames,
  type FrameStream,
  type Hello,
  ServiceError,
  type StreamEnd,
} from '@remora/base';
import type { FrameLink, FrameReceiver } from '../link.ts';

/** Links over streams of frames between two processes. */

export interface DialledLink {
  /** `host:port` */
  readonly address: string;
  readonly hello: Hello;
  /** Checks the other end's hello: the link opens only if it returns nothing. */
  readonly check: (hello: Hello, certificate: CertificateNames | undefined) => ServiceError | undefined;
}

/** The dialling end. Only the hello is sent before the other side's hello is checked. */
export function dialLink({ address, hello, check }: DialledLink, options: DialOptions): FrameLink {
  let receiver: FrameReceiver | undefined;
  const stream: FrameStream = dialFrames(address, hello, options, {
    onHello(answer) {
      const refusal = check(answer, stream.peerCertificate);
      if (refusal === undefined) return receiver?.onOpen();
      stream.destroy();
      receiver?.onClose(refusal);
    },
    onHeard: () => receiver?.onHeard?.(),
    onFrame: (frame) => receiver?.onFrame(frame),
    onDrain: () => receiver?.onDrain(),
    onEnd: (end) => receiver?.onClose(errorOf(end)),
  });
  return {
    start(attached) {
      receiver = attached;
    },
    send: (frame) => stream.send(frame),
    close: () => stream.destroy(),
  };
}

/** The accepting end; the hellos have already been exchanged. */
export function acceptedLink(stream: FrameStream): FrameLink {
  return {
    start(receiver) {
      stream.handle({
        onHeard: () => receiver.onHeard?.(),
        onFrame: (frame) => receiver.onFrame(frame),
        onDrain: () => receiver.onDrain(),
        onEnd: (end) => receiver.onClose(errorOf(end)),
      });
      receiver.onOpen();
    },
    send: (frame) => stream.send(frame),
    holdsBack: (bytes) => stream.holdsBack(bytes),
    close: (reason) => stream.end(reason ?? new ServiceError('UNAVAILABLE', 'the server is stopping')),
  };
}

function errorOf({ code, message }: StreamEnd): ServiceError {
  return new ServiceError(code ?? 'UNAVAILABLE', message);
}
