/** What `connect` and `RemoraClient.session` may be asked for, and what follows from it. */
import { ServiceError } from '@remora/base';
import { PIPE_REQUEST_BYTES_MAX } from '@remora/protocol';
import type { ClientMetrics } from './observe/client-metrics.ts';
import type { Tracer } from './observe/tracing.ts';
import { type Duration, durationMs, requestMsOf, ttlMsOf } from './options/duration.ts';
import { attributes, callback, checkedByCall, count, duration, flag, object, ttl } from './options/option-kinds.ts';
import { type ChecksOf, optionSet, requireAttributes, shown } from './options/options.ts';
import type { HealthCheck } from './session/health.ts';
import { CREDENTIAL_CHECKS, type CredentialOptions, type Credentials, credentialsOf } from './transport/credentials.ts';
import { type RetryOptions, type RetryPolicy, retryPolicy } from './transport/retry.ts';

export interface ClientOptions extends CredentialOptions {
  /**
   * Gateways, as `host:port`. The client uses one at a time and changes to another when that one fails or hangs. A host
   * with several addresses stands for all of them. `srv://NAME` stands for the targets of the SRV records of
   * `_remora._tcp.NAME`, which are looked up at each connection.
   */
  readonly endpoints: string | readonly string[];
  /**
   * Ask the cluster for its other gateways, and use them when none of `endpoints` works: one endpoint is then enough.
   * The client reaches them at the addresses that nodes advertise (`--advertise-client`), with TLS if `endpoints` use
   * TLS. It ignores those that it cannot reach. Default true.
   */
  readonly discover?: boolean | undefined;
  /** How long one request may take, retries included, unless the call says otherwise. Default 10 s, at most 60 s. */
  readonly requestTimeout?: Duration | undefined;
  /** How failed requests are retried within their time-out. */
  readonly retry?: RetryOptions | undefined;
  /**
   * Do not wait for a gateway: `connect` returns at once, and the client looks for the cluster in the background, for
   * as long as it takes (`ready`). Until then requests behave as during an outage: each ends by its own time-out.
   * Default false.
   */
  readonly lazy?: boolean | undefined;
  /**
   * A task that holds a lock by `run` enters it again, instead of waiting for itself: see `LockOptions`. Default false:
   * waiting for itself is refused (LOCK_SELF_WAIT).
   */
  readonly reentrant?: boolean | undefined;
  /** How long `connect` looks for a gateway that answers. Default 10 s. */
  readonly connectTimeout?: Duration | undefined;
  /** How long the client's locks outlive its process when it dies or is cut off. At least 100 ms. Default 10 s. */
  readonly sessionTtl?: Duration | undefined;
  /**
   * The largest request that the client sends, in bytes. Nodes refuse what is above their own `--request-bytes-max`:
   * raise both together. Default 2 MiB.
   */
  readonly requestBytesMax?: number | undefined;
  /**
   * Shown with this client's sessions, such as a host and a process id. At most 16 attributes and 4 KiB for each
   * session.
   */
  readonly attributes?: Readonly<Record<string, string>> | undefined;
  /**
   * Close the client when the process exits, or is ended by SIGTERM, SIGINT or SIGHUP, so that others need not wait for
   * the TTL of its sessions. The signal then has its usual effect. If the program itself listens to a signal, the
   * client ignores that signal, and the program closes the client when its work is done. Default true.
   */
  readonly releaseOnExit?: boolean | undefined;
  /**
   * Traces how long locks are waited for and held: a tracer of `@opentelemetry/api`, or any object with its
   * `startSpan`.
   */
  readonly tracer?: Tracer | undefined;
  /** Collects the numbers of the client: `remora/metrics` has adapters for `prom-client` and OpenTelemetry. */
  readonly metrics?: ClientMetrics | undefined;
  /**
   * Returns the W3C trace context (`traceparent`) of the span that is active; undefined: none is. It is called once for
   * each request, and the gateway's span is a child of that span (`--otlp-endpoint`).
   */
  readonly traceContext?: (() => string | undefined) | undefined;
}

/** What the nodes accept with `--request-bytes-max` is less. */
const REQUEST_BYTES_MAX = 1024 * 1024 * 1024;

export const CLIENT_CHECKS: ChecksOf<ClientOptions> = {
  ...{ endpoints: checkedByCall, requestTimeout: duration, retry: object, connectTimeout: duration, sessionTtl: ttl },
  ...{
    requestBytesMax: count(1, REQUEST_BYTES_MAX),
    attributes,
    releaseOnExit: flag,
    discover: flag,
    lazy: flag,
    reentrant: flag,
    tracer: object,
  },
  traceContext: callback,
  metrics: object,
  ...CREDENTIAL_CHECKS,
};

export interface SessionOptions {
  /** How long the session outlives its last heartbeat. At least 100 ms. Default: `sessionTtl` of the client. */
  readonly ttl?: Duration | undefined;
  /** Shown with the session, in addition to the client's own attributes. At most 16 in all, and 4 KiB. */
  readonly attributes?: Readonly<Record<string, string>> | undefined;
  /** Ends the session, and so releases its locks at once, when this check has failed several times in a row. */
  readonly health?: HealthCheck | undefined;
}

export const SESSION_OPTIONS = optionSet<SessionOptions>('session', { ttl, attributes, health: object });

/** The options of a client, checked, with their defaults. */
export interface ClientSettings {
  readonly requester: {
    readonly endpoints: readonly string[];
    readonly requestBytesMax: number;
    readonly retry: RetryPolicy;
    readonly credentials: Credentials | undefined;
    readonly traceContext: (() => string | undefined) | undefined;
    readonly metrics: ClientMetrics | undefined;
  };
  readonly discover: boolean;
  readonly lazy: boolean;
  readonly reentrant: boolean;
  readonly requestTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly sessionTtlMs: number;
  readonly attributes: Readonly<Record<string, string>>;
  readonly releaseOnExit: boolean;
  readonly tracer: Tracer | undefined;
}

const REQUEST_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 10_000;
const SESSION_TTL_MS = 10_000;

/** @throws ServiceError INVALID_ARGUMENT for an option that is out of its bounds. */
export function clientSettings(options: ClientOptions): ClientSettings {
  requireAttributes(options.attributes ?? {});
  return {
    requester: {
      endpoints: endpointsOf(options),
      requestBytesMax: options.requestBytesMax ?? PIPE_REQUEST_BYTES_MAX,
      retry: retryPolicy(options.retry),
      credentials: credentialsOf(options),
      traceContext: options.traceContext,
      metrics: options.metrics,
    },
    discover: options.discover ?? true,
    lazy: options.lazy ?? false,
    reentrant: options.reentrant ?? false,
    requestTimeoutMs: requestMsOf(options.requestTimeout ?? REQUEST_TIMEOUT_MS, 'requestTimeout'),
    connectTimeoutMs: durationMs(options.connectTimeout ?? CONNECT_TIMEOUT_MS, 'connectTimeout'),
    sessionTtlMs: ttlMsOf(options.sessionTtl ?? SESSION_TTL_MS, 'sessionTtl'),
    attributes: options.attributes ?? {},
    releaseOnExit: options.releaseOnExit ?? true,
    tracer: options.tracer,
  };
}

/** @throws ServiceError INVALID_ARGUMENT for anything but a string, or a list of strings. */
export function endpointsOf({ endpoints }: Pick<ClientOptions, 'endpoints'>): readonly string[] {
  const all = typeof endpoints === 'string' ? endpoints.split(',') : endpoints;
  if (Array.isArray(all) && all.every((endpoint) => typeof endpoint === 'string')) return all;
  throw new ServiceError(
    'INVALID_ARGUMENT',
    `endpoints: expected text, or a list of texts, such as '127.0.0.1:7480', got ${shown(endpoints)}`,
  );
}
