import { cpus, release, totalmem } from 'node:os';

/** What a benchmark ran on. */
export function machine(): object {
  const [cpu] = cpus();
  return {
    cpu: cpu?.model,
    cores: cpus().length,
    memoryBytes: totalmem(),
    kernel: release(),
    node: process.version,
  };
}
