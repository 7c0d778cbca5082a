/** The ports of a test cluster that listens. Loaded only for one, because gRPC and HTTP take a while to load. */
import { createMetrics } from '@remora/base/node';
import type { EntryDeps, NodeEntry } from '../node/platform.ts';
import { Entry } from '../node/ports/entry.ts';
import { NodeTls } from '../node/ports/node-tls.ts';
import { PortMetrics } from '../node/ports/port-metrics.ts';
import type { NodeOptions } from '../node-options.ts';

export async function listeningEntry(
  options: NodeOptions,
  ports: Pick<EntryDeps, 'clock' | 'logger'>,
): Promise<(deps: EntryDeps) => NodeEntry> {
  const tls = await NodeTls.open(options, ports);
  return (deps) => {
    const metrics = createMetrics();
    return new Entry(deps, metrics, new PortMetrics(metrics), tls);
  };
}
