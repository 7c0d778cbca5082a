/** What this node's gateway does for clients: requests pass admission and permissions on their way to the ranges. */
import type { Audit, KnownAuth } from '@remora/auth';
import type { RevisionDrawer } from '@remora/dataserver';
import {
  type Admission,
  AdmittedBackend,
  AuthorisedBackend,
  type Backend,
  RangeBackend,
  RequestMeter,
  TracedBackend,
} from '@remora/gateway';
import type { MasterFinder } from '@remora/master';
import { type ClusterView, masterView, type RpcDialer } from '@remora/protocol';
import type { NodeOptions } from '../node-options.ts';
import type { NodePlatform } from './platform.ts';

/** The time limit for a refresh of the routes between heartbeats. */
const VIEW_TIMEOUT_MS = 1_000;

interface GatewayParts extends Pick<NodePlatform, 'clock' | 'random' | 'logger'> {
  readonly options: NodeOptions;
  readonly platform: NodePlatform;
  readonly admission: Admission;
}

export interface RangeBackendParts extends GatewayParts {
  readonly nodeId: number;
  readonly dialer: RpcDialer;
  readonly finder: MasterFinder;
  readonly drawer: RevisionDrawer;
  readonly view: () => ClusterView;
}

/** Routes requests to the ranges of all nodes. */
export function createRangeBackend(parts: RangeBackendParts): RangeBackend {
  const { clock, random, logger, options, platform, nodeId, dialer, finder, drawer, view, admission } = parts;
  const { metrics } = platform;
  return new RangeBackend({
    ...{ clock, random, logger, nodeId, dialer, view },
    master: {
      newest: (floor, done) => drawer.newest(floor, done),
      draw: (floor, done) => drawer.one(floor, done),
      view: (done) => finder.call(masterView, undefined, { timeoutMs: VIEW_TIMEOUT_MS }, done),
    },
    onWaitRefused: admission.countWait,
    meter: metrics && new RequestMeter({ clock, logger, metrics, slowMs: options.slowRequest }),
    ...platform.tuning?.gateway,
  });
}

export interface BackendParts extends GatewayParts {
  readonly ranges: RangeBackend;
  /** What this node knows of users and roles. */
  readonly known: KnownAuth;
  readonly audit: Audit;
}

/** What the ports for clients call. */
export function createBackend({ clock, random, platform, ranges, known, audit, admission }: BackendParts): Backend {
  const authorised = new AuthorisedBackend({ ranges, known, clock, audit });
  const admitted = new AdmittedBackend(authorised, admission);
  const { spans } = platform;
  return spans === undefined ? admitted : new TracedBackend({ backend: admitted, spans, clock, random });
}
