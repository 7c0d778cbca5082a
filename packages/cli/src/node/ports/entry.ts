import { formatAddress, OUTPUT_LIMITS, OutputBudget } from '@remora/base';
import type { MetricsRegistry } from '@remora/base/node';
import {
  AdminApi,
  AuthAdmin,
  adminService,
  authService,
  CLIENT_SERVER_LIMITS,
  ClientServer,
  ClusterCalls,
  createHttpEndpoint,
  createPipeService,
  ETCD_LIMITS,
  type EtcdApi,
  etcdApi,
  etcdServices,
  type HttpEndpoint,
  healthService,
  ListenError,
  lockService,
  type PipeService,
} from '@remora/gateway';
import { pipeFrameBytesMax } from '@remora/protocol';
import { consoleDirectory } from '../../console-directory.ts';
import { CommandError } from '../../exit-codes.ts';
import { httpNames, inputLimitsOf } from '../../node-options.ts';
import { clientTlsMode } from '../../tls-options.ts';
import { VERSION } from '../../version.ts';
import { authMetrics } from '../auth-metrics.ts';
import { readConsoleFiles } from '../console/console-files.ts';
import { consoleHandler } from '../console/console-handler.ts';
import { nodeMetrics } from '../node-metrics.ts';
import type { EntryDeps, NodeEntry } from '../platform.ts';
import {
  API_LIMITS,
  HEALTH_LIMITS,
  type HttpConnections,
  type HttpHandler,
  type HttpServerOptions,
  type Report,
  type RunningHttpServer,
  serveHttpConnections,
  startHttpServer,
} from './http-server.ts';
import type { NodeTls } from './node-tls.ts';
import { grpcMetrics, type PortMetrics, tlsMetrics } from './port-metrics.ts';

/** A node's external interfaces: the port for clients, and HTTP for operators. */
export class Entry implements NodeEntry {
  readonly #deps: EntryDeps;
  readonly #metrics: MetricsRegistry;
  readonly #ports: PortMetrics;
  readonly #tls: NodeTls;
  readonly #etcd: EtcdApi;
  readonly #auth: AuthAdmin;
  readonly #admin: AdminApi;
  #server: ClientServer | undefined;
  #pipe: PipeService | undefined;
  #endpoint: HttpEndpoint | undefined;
  readonly #http: Pick<RunningHttpServer, 'stop'>[] = [];
  /** HTTP on the port for clients, as etcd has it. */
  #clientHttp: HttpConnections | undefined;

  constructor(deps: EntryDeps, metrics: MetricsRegistry, ports: PortMetrics, tls: NodeTls) {
    this.#deps = deps;
    this.#tls = tls;
    this.#metrics = metrics;
    this.#ports = ports;
    const { backend, clock, random, options, logger, master, dialer, health } = deps;
    const limits = { ...ETCD_LIMITS, requestBytesMax: options.requestBytesMax, txnOpsMax: options.txnOpsMax };
    const calls = new ClusterCalls({ clock, random, master, dialer });
    const { known, authenticator, audit } = deps;
    const auth = new AuthAdmin({ calls, known, authenticator, random, audit, backend, logger });
    this.#auth = auth;
    this.#admin = new AdminApi(deps);
    const node = { master, dialer, auth, conditions: () => health.conditions(), program: VERSION };
    // While both are allowed, etcd clients that learn endpoints may be without TLS.
    const scheme = clientTlsMode(options) === 'tls' ? 'https' : 'http';
    const etcd = { backend, clock, random, scheme, limits, node } as const;
    this.#etcd = etcdApi(etcd, () => this.#server?.guard.abandoned === true);
  }

  async start(): Promise<void> {
    await this.#startHttp();
    if (this.#deps.options.roles.includes('gateway')) await this.#startClients();
  }

  async #startClients(): Promise<void> {
    const { options, clock, random, logger, backend, admission, health } = this.#deps;
    const identification = this.#deps.authenticator;
    const { requestBytesMax, txnOpsMax } = options;
    const requestLimits = { requestBytesMax, txnOpsMax };
    const messageBytesMax = pipeFrameBytesMax(requestBytesMax);
    const limits = { ...CLIENT_SERVER_LIMITS, messageBytesMax, input: inputLimitsOf(options) };
    const onBusy = admission.countBusy;
    const onMalformed = (): void => admission.countMalformed('grpc');
    const secure = this.#tls.port('client');
    const server = new ClientServer({ logger, clock, identification, limits, secure, onBusy, onMalformed });
    this.#pipe = createPipeService({
      ...{ backend, clock, logger, identification, requestLimits, onBusy },
      cluster: this.#deps.shownClusterId,
      conditions: () => health.conditions(),
      onMalformed: () => admission.countMalformed('pipe'),
    });
    server.add(...etcdServices(this.#etcd, server.guard));
    server.add(healthService({ clock, isReady: () => health.readiness().ready }, server.guard));
    server.add(lockService({ backend, random }, server.guard));
    server.add(adminService({ api: this.#admin, auth: this.#auth, backend }, server.guard));
    server.add(authService(this.#auth, server.guard));
    server.addFrames(this.#pipe);
    server.addHttp((socket) => this.#clientHttp?.take(socket));
    this.#server = server;
    this.#ports.show('client', () => server.held);
    grpcMetrics(this.#metrics, () => server.grpc);
    try {
      await server.start(options.clientListen.host, options.clientListen.port);
    } catch (cause) {
      if (!(cause instanceof ListenError)) throw cause;
      throw new CommandError('portTaken', `${cause.message}; choose another --client-listen`, { cause });
    }
  }

  async #startHttp(): Promise<void> {
    const { options, logger, admission, clock } = this.#deps;
    const onMalformed = (): void => admission.countMalformed('http');
    if (options.roles.includes('gateway'))
      this.#endpoint = createHttpEndpoint({
        ...{
          ...this.#deps,
          admin: this.#admin,
          auth: this.#auth,
          etcd: this.#etcd,
          requestBytesMax: options.requestBytesMax,
        },
        identification: this.#deps.authenticator,
        ...{ onMalformed, onWaitRefused: admission.countWait },
      });
    const output = new OutputBudget(OUTPUT_LIMITS, clock, logger);
    const endpoint = this.#endpoint;
    this.#ports.show('http', () => endpoint && { input: endpoint.input, output: output.stats });
    const metrics = this.#metrics;
    nodeMetrics(metrics, this.#deps);
    authMetrics(metrics, this.#deps);
    tlsMetrics(metrics, this.#tls, () => this.#deps.clock.wallMs());
    const both = {
      names: httpNames(options),
      logger,
      health: () => ({ ok: true, reasons: [], details: { node: options.name, nodeId: this.#deps.nodeId } }),
      ready: () => this.#ready(),
      metrics: async () => ({ contentType: metrics.contentType, body: await metrics.render() }),
    };
    const health = { listen: options.healthListen, flag: '--health-listen', limits: HEALTH_LIMITS };
    await this.#serveHttp({ ...both, ...health }, 'health and metrics');
    const handlers = this.#endpoint === undefined ? [] : [this.#endpoint, ...this.#console()];
    const api = { ...both, limits: API_LIMITS, handlers, output };
    const secure = this.#tls.port('http');
    await this.#serveHttp({ ...api, listen: options.httpListen, flag: '--http-listen', secure }, 'HTTP');
    this.#clientHttp = serveHttpConnections(api);
    this.#http.push(this.#clientHttp);
  }

  async #serveHttp(served: HttpServerOptions, purpose: string): Promise<void> {
    const server = await startHttpServer(served);
    this.#http.push(server);
    const address = formatAddress({ host: served.listen.host, port: server.port });
    this.#deps.logger.info({ address }, `listening for ${purpose}`);
  }

  #console(): readonly HttpHandler[] {
    const { options, logger } = this.#deps;
    if (options.console === 'off') return [];
    const directory = consoleDirectory();
    if (directory !== undefined) return [consoleHandler(readConsoleFiles(directory))];
    logger.warn({}, 'the files of the console are missing, so browsers do not find it; npm run build makes them');
    return [];
  }

  /** 503 only if another node would serve better; the body lists all problems (health.ts NH2). */
  #ready(): Report {
    const { health, nodeId, options } = this.#deps;
    const { ready, reasons, conditions } = health.readiness();
    return { ok: ready, reasons, details: { node: options.name, nodeId, conditions } };
  }

  /** Refuses new calls, lets running ones end, then closes the ports. */
  async stop(): Promise<void> {
    this.#pipe?.close();
    await Promise.all([this.#server?.stop(SHUTDOWN_GRACE_MS), this.#endpoint?.stop()]);
    await Promise.all(this.#http.map((server) => server.stop()));
  }
}

/** How long calls in progress may take to end once the node stops. */
const SHUTDOWN_GRACE_MS = 1_000;
