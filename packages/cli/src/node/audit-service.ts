import type { RecentAudit } from '@remora/auth';
import { nodeAudit, type RpcRegistry } from '@remora/protocol';

/** More records than a node keeps are never asked for. */
const LIMIT_MAX = 1_000;

/** Returns the newest audit records of this node to other nodes, whose gateways decide who may see them. */
export function serveAudit(registry: RpcRegistry, audit: RecentAudit): void {
  registry.handle(nodeAudit, ({ before, limit }, _context, done) => {
    const { records, more } = audit.page(before, Math.min(limit, LIMIT_MAX));
    done(undefined, { isKept: audit.isOn, records: records.map((record) => ({ ...record })), more });
  });
}
