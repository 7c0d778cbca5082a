/**
 * The *Pipe*: the stream of frames between the SDK and a gateway, which sends all operations of a turn in one frame.
 *
 * PL1. Both ends name the versions of their builds in their hello, and send nothing else if no version is common. The
 *      version in force does not count: clients write nothing that stays.
 * PL2. A client that discovered an address names the cluster that it belongs to, and a gateway of another cluster
 *      refuses it: behind NAT, the address that a gateway advertises may belong to another machine in the client's
 *      network.
 */
import type { ConnectionOptions } from 'node:tls';
import {
  BUILD_VERSIONS,
  type Clock,
  type Hello,
  rangeOf,
  rangeText,
  SERVICE,
  ServiceError,
  type VersionRange,
  versionRefusal,
} from '@remora/base';
import { FRAME_BYTES_MAX, type FrameLink } from '../../rpc/link.ts';
import { dialLink } from '../../rpc/node/frame-link.ts';
import { FRAME_BYTES_SOFT } from '../../rpc/outbox.ts';

/** The name of the Pipe's streams at a gateway's port. */
export const PIPE_SERVICE = 'pipe';
/** The field of a client's hello that names the cluster it expects (PL2). */
export const PIPE_CLUSTER = 'cluster';
/** The hello of either end. */
export const PIPE_HELLO: Hello = { [SERVICE]: PIPE_SERVICE, versions: rangeText(BUILD_VERSIONS) };
/** A gateway accepts at least frames of this size; it ends a stream that brings a larger one. */
export const PIPE_FRAME_BYTES_MAX = 4 << 20;
/** Room in a frame for everything beside keys and values. */
const FRAME_OVERHEAD_BYTES = 1 << 20;
/** The largest request that fits into a frame at any gateway, whatever was put into the frame before it. */
export const PIPE_REQUEST_BYTES_MAX = PIPE_FRAME_BYTES_MAX - FRAME_BYTES_SOFT - FRAME_OVERHEAD_BYTES;

/** A gateway that is silent for this long is probed … */
const PROBE_MS = 5_000;
/** … and given up if it does not answer in this time. Callers with open requests find out sooner (rpc/silence.ts). */
const PROBE_TIMEOUT_MS = 3_000;

/**
 * The frame size that a gateway must accept for requests of at most this size: many small requests, or a large one
 * after them.
 */
export function pipeFrameBytesMax(requestBytesMax: number): number {
  return Math.max(PIPE_FRAME_BYTES_MAX, FRAME_BYTES_SOFT + requestBytesMax + FRAME_OVERHEAD_BYTES);
}

export interface PipeDialOptions {
  readonly clock: Clock;
  /** Plain text if absent. */
  readonly tls?: ConnectionOptions | undefined;
  /** The gateway must belong to this cluster (PL2); absent: any gateway. */
  readonly cluster?: string | undefined;
}

/** Begins a Pipe to the gateway at `address` (`host:port`). */
export function dialPipe(address: string, { clock, tls, cluster }: PipeDialOptions): FrameLink {
  const hello = cluster === undefined ? PIPE_HELLO : { ...PIPE_HELLO, [PIPE_CLUSTER]: cluster };
  return dialLink(
    { address, hello, check: (answer) => pipeRefusal(answer, CALLING) },
    { clock, tls, frameBytesMax: FRAME_BYTES_MAX, probeMs: PROBE_MS, probeTimeoutMs: PROBE_TIMEOUT_MS },
  );
}

const CALLING = { own: 'the client', peer: 'the gateway' };
const SERVING = { own: 'the gateway', peer: 'the client' };

/** PL1. Returns the refusal of the other end's hello, if any; by default, of a client's. */
export function pipeRefusal(
  { versions = '' }: Hello,
  who = SERVING,
  builds: VersionRange = BUILD_VERSIONS,
): ServiceError | undefined {
  const text = versionRefusal({ builds }, rangeOf(versions), who);
  return text === undefined ? undefined : new ServiceError('VERSION_REFUSED', text);
}

/**
 * PL2. The refusal of a gateway of the cluster `own` for a client's hello: the client treats it as a gateway that is
 *      not there.
 */
export function clusterRefusal({ [PIPE_CLUSTER]: wanted }: Hello, own: string): ServiceError | undefined {
  if (wanted === undefined || wanted === own) return undefined;
  return new ServiceError(
    'UNAVAILABLE',
    'this gateway belongs to another cluster than the one that the client looks for',
  );
}
