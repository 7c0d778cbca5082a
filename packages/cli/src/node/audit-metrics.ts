import type { AuditLog } from '@remora/auth';
import type { MetricsRegistry } from '@remora/base/node';

/** Whether the audit log is complete; read on request. Only with `--audit-log`. */
export function auditMetrics(metrics: MetricsRegistry, audit: Pick<AuditLog, 'stats'>): void {
  const counter = (name: string, help: string) => metrics.observedCounter({ name: `remora_audit_${name}`, help });
  const lines = counter('lines_total', 'Lines for the audit log.');
  const dropped = counter('dropped_total', 'Lines that the audit log lacks, because the disk was slow or full.');
  const queue = metrics.gauge({ name: 'remora_audit_queue_bytes', help: 'Bytes that wait to be written.' });
  metrics.onRender(() => {
    const { stats } = audit;
    lines.set(stats.lines);
    dropped.set(stats.dropped);
    queue.set(stats.queueBytes);
  });
}
