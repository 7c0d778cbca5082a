import { nodeNow, type RpcRegistry } from '@remora/protocol';
import type { MinuteReporter } from './minute-reporter.ts';

/** Tells gateways what this node counts now. */
export function serveActivity(registry: RpcRegistry, reporter: Pick<MinuteReporter, 'now'>): void {
  registry.handle(nodeNow, (_request, _context, done) => done(undefined, reporter.now()));
}
