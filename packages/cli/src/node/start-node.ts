/** A node as a process: sockets, files, LevelDB and the system's clock, with the parts from `assemble.ts`. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AuditLog, passwordThread } from '@remora/auth';
import {
  type Clock,
  DISK_FULL_ADVICE,
  DiskFailedError,
  formatAddress,
  type Logger,
  NameLookups,
  nodeClock,
  nodeDisk,
  nodeRandom,
  openFramePort,
  type Random,
  ServiceError,
  STRANGER_LIMITS,
  saysFull,
  sectionedClock,
  warnOfLooseFile,
  warnOfLooseMode,
} from '@remora/base';
import {
  countSections,
  createMetrics,
  createPinoLogger,
  type LevelledLogger,
  type MetricsRegistry,
} from '@remora/base/node';
import { openLevelEngine, StoreDamagedError, StoreOpenError } from '@remora/dataserver';
import type { SpanSink } from '@remora/gateway';
import { type Caller, createRpcService, dialRpc, incarnationDigest, type RpcService } from '@remora/protocol';
import {
  createRaftHost,
  createSocketTransport,
  LogDamagedError,
  LogVersionError,
  type SocketTransport,
  StateLostError,
} from '@remora/raft';
import { CommandError } from '../exit-codes.ts';
import { inputLimitsOf, type NodeOptions } from '../node-options.ts';
import { VERSION } from '../version.ts';
import { assembleNode } from './assemble.ts';
import { auditMetrics } from './audit-metrics.ts';
import { plannedFounding } from './cluster/cluster-identity.ts';
import { openAuditFile } from './files/audit-file.ts';
import { type DataDir, openDataDir } from './files/data-dir.ts';
import { diskSpace } from './files/disk-space.ts';
import type { LogLevelSwitch } from './log-level-service.ts';
import type { NodePlatform, PeerRefusal, Peers, PeersDeps } from './platform.ts';
import { Entry } from './ports/entry.ts';
import { expectFreePorts } from './ports/free-ports.ts';
import { NodeTls } from './ports/node-tls.ts';
import { PortMetrics } from './ports/port-metrics.ts';
import type { RunningNode } from './running-node.ts';
import { logSyncTimes } from './time-metrics.ts';
import type { OtlpExporter } from './tracing/otlp-exporter.ts';

/** Assembles a node from its roles and runs it in this process; by default it logs to standard error. */
export async function startNode(
  options: NodeOptions,
  signal: AbortSignal,
  root: Logger | LevelledLogger = createPinoLogger({ level: options.logLevel, pretty: options.logFormat === 'pretty' }),
): Promise<RunningNode> {
  const clock = sectionedClock(nodeClock());
  const random = nodeRandom();
  const logger = root.child({ node: options.name });
  const tls = await NodeTls.open(options, { clock, logger });
  const dataDir = await openDataDir({
    dir: options.dataDir,
    name: options.name,
    random,
    planned: plannedFounding(options),
  }).catch(sayIfStorage);
  await expectFreePorts(options).catch(async (error: unknown) => {
    await dataDir.close();
    tls.stop();
    throw error;
  });
  const audit = await openAuditLog(options, { clock, logger });
  await warnOfLooseModes(options, dataDir, logger);
  const connector = new NameLookups(clock, tls.connector);
  const metrics = createMetrics({ process: true });
  const exporter = await openExporter(options, { clock, logger, metrics });
  const platform = processPlatform(options, {
    clock,
    random,
    logger,
    dataDir,
    tls,
    connector,
    audit,
    logLevel: 'level' in root ? root : undefined,
    metrics,
    spans: exporter,
  });
  if (audit !== undefined) auditMetrics(platform.metrics, audit);
  const endSections = countSections(platform.metrics, clock);
  const end = (): void => {
    endSections();
    tls.stop();
  };
  const node = await assembleNode(options, platform, signal).catch((error: unknown) => {
    end();
    return sayIfStorage(error);
  });
  const failed = node.failed.catch(sayIfStorage);
  failed.catch(() => {}); // The caller watches it.
  return {
    failed,
    async stop() {
      await node.stop().finally(end);
      await exporter?.close();
      await audit?.close();
    },
    async reload(changed) {
      node.hint(changed);
      audit?.reopen();
      await tls.reload();
    },
  };
}

async function warnOfLooseModes(
  { auditLog, initialRootPasswordFile: password }: NodeOptions,
  dataDir: DataDir,
  logger: Logger,
): Promise<void> {
  await warnOfLooseMode(dataDir.path, 'the data directory', logger);
  if (auditLog !== undefined) await warnOfLooseFile(auditLog, 'the audit log', logger);
  if (password !== undefined) await warnOfLooseFile(password, 'the file with the password of root', logger);
}

/** Loads the exporter only if spans are to be exported. */
async function openExporter(
  { otlpEndpoint: endpoint, name }: NodeOptions,
  ports: { readonly clock: Clock; readonly logger: Logger; readonly metrics: MetricsRegistry },
): Promise<OtlpExporter | undefined> {
  if (endpoint === undefined) return undefined;
  const { OtlpExporter } = await import('./tracing/otlp-exporter.ts');
  const resource = { 'service.name': 'remora', 'service.version': VERSION, 'service.instance.id': name };
  const headers = { 'content-type': 'application/json' };
  const send = (url: string, body: string, signal: AbortSignal) =>
    fetch(url, { method: 'POST', headers, body, signal });
  return new OtlpExporter({ ...ports, send }, { endpoint, resource });
}

async function openAuditLog(
  { auditLog, auditWrites: writes }: NodeOptions,
  ports: { readonly clock: Clock; readonly logger: Logger },
): Promise<AuditLog | undefined> {
  if (auditLog === undefined) return undefined;
  const timeText = (wallMs: number) => new Date(wallMs).toISOString();
  return new AuditLog({ ...ports, timeText, writes, sink: await openAuditFile(auditLog) });
}

/**
 * A fault of the data directory remains, however often the node is restarted; a failed disk may work the next time. The
 * exit codes distinguish the two.
 */
function sayIfStorage(error: unknown): never {
  const ofDataDir = inCauses(error, (cause) => DATA_DIR_ERRORS.some((kind) => cause instanceof kind));
  if (ofDataDir !== undefined) throw new CommandError('dataDir', ofDataDir.message, { cause: error });
  const ofDisk = inCauses(error, (cause) => cause instanceof DiskFailedError || saysFull(cause));
  if (!(error instanceof Error) || ofDisk === undefined) throw error;
  const advice = ofDisk instanceof DiskFailedError ? '' : `: ${DISK_FULL_ADVICE}`;
  throw new CommandError('disk', `${error.message}${advice}`, { cause: error });
}

const DATA_DIR_ERRORS = [StoreOpenError, StoreDamagedError, StateLostError, LogVersionError, LogDamagedError];

/** Returns the first `wanted` error among an error and its causes. */
function inCauses(error: unknown, wanted: (cause: Error) => boolean): Error | undefined {
  if (!(error instanceof Error)) return undefined;
  return wanted(error) ? error : inCauses(error.cause, wanted);
}

interface ProcessParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly dataDir: DataDir;
  readonly tls: NodeTls;
  /** Opens connections to other nodes. */
  readonly connector: NameLookups;
  readonly audit: AuditLog | undefined;
  readonly logLevel: LogLevelSwitch | undefined;
  readonly metrics: MetricsRegistry;
  readonly spans: SpanSink | undefined;
}

function processPlatform(
  options: NodeOptions,
  parts: ProcessParts,
): NodePlatform & { readonly metrics: MetricsRegistry } {
  const { clock, random, logger, dataDir, tls, connector, audit } = parts;
  const { metrics } = parts;
  const ports = new PortMetrics(metrics);
  return {
    clock,
    random,
    logger,
    logLevel: parts.logLevel,
    spans: parts.spans,
    version: VERSION,
    records: dataDir,
    logDisk: nodeDisk(dataDir.path, {
      onSynced: logSyncTimes(metrics, { clock, logger, slowMs: options.slowRequest }),
    }),
    space: diskSpace(dataDir.path, { clock, logger, reserveBytes: options.diskReserve }),
    stagingDisk: nodeDisk(dataDir.path, { syncInPlace: false }),
    audit,
    passwordThread,
    readSecret: (file) => readFile(file, 'utf8'),
    openEngine: (deps) => openLevelEngine({ ...deps, dir: join(dataDir.path, 'engine') }),
    createHost: createRaftHost,
    connect: (target, self, verify) => dialRpc(target, self, clock, verify, connector),
    trustDomain: () => tls.trustDomain,
    certificates: () => tls.expiries,
    failedLookups: () => connector.failed,
    openPeers: (deps) => new ProcessPeers(options, { ...parts, ports }, deps),
    metrics,
    reading: (name) => metrics.reading(name),
    openEntry: (deps) => new Entry(deps, metrics, ports, tls),
  };
}

/** Raft's streams are for nodes that the masters have named: an unknown node will be named in a moment, or never. */
function refusalOf(caller: Caller | ServiceError): PeerRefusal | undefined {
  if (caller instanceof ServiceError) return caller;
  if (caller.kind === 'node') return undefined;
  return {
    code: 'UNAVAILABLE',
    message: 'this node has not learned of the calling node from the masters yet; try again',
  };
}

/** One port serves the Raft streams and the calls between roles. */
class ProcessPeers implements Peers {
  readonly #options: NodeOptions;
  readonly #parts: ProcessParts & { readonly ports: PortMetrics };
  readonly #deps: PeersDeps;
  readonly #raft: SocketTransport;
  #stop: () => void = () => {};

  constructor(options: NodeOptions, parts: ProcessParts & { readonly ports: PortMetrics }, deps: PeersDeps) {
    this.#options = options;
    this.#parts = parts;
    this.#deps = deps;
    this.#raft = createSocketTransport({
      local: deps.self,
      resolveAddress: deps.resolveAddress,
      onUnreached: deps.onUnreached,
      clock: parts.clock,
      random: parts.random,
      logger: parts.logger,
      connector: parts.connector,
      verifyPeer: (peer, certificate) => refusalOf(deps.identify(peer, certificate)),
      verifyAnswer: ({ nodeId, incarnation }, certificate) =>
        deps.verify({ nodeId, digest: incarnationDigest(incarnation), wanted: true, certificate }),
      onPeerVerified: deps.onMet,
      onRefused: deps.onRefused,
    });
  }

  get transport() {
    return this.#raft.transport;
  }

  async listen(registry: Parameters<Peers['listen']>[0]): Promise<void> {
    const { clock, logger, ports } = this.#parts;
    const { self, identify, onNode } = this.#deps;
    const rpc = createRpcService({ registry, clock, logger, identity: () => self, identify, onNode });
    const server = await this.#bind(rpc);
    ports.show('peer', () => server);
    const { host } = this.#options.peerListen;
    logger.info({ address: formatAddress({ host, port: server.port }) }, 'listening for other nodes');
    this.#stop = () => {
      rpc.close();
      server.close();
    };
  }

  #bind(rpc: RpcService) {
    const { host, port } = this.#options.peerListen;
    const services = [...this.#raft.services, rpc];
    const { clock, logger } = this.#parts;
    const input = { ...inputLimitsOf(this.#options), strangers: STRANGER_LIMITS };
    const secure = this.#parts.tls.port('peer');
    return openFramePort({ clock, logger, host, port, services, input, secure }).catch((cause: unknown) => {
      const message = `cannot listen on ${formatAddress({ host, port })}; is the port in use? Choose another --peer-listen`;
      throw new CommandError('portTaken', message, { cause });
    });
  }

  close(): void {
    this.#stop();
  }
}
