/** A node process of the Raft benchmark: does what its parent says over IPC, and ends with it. */
import { BenchNode } from './bench-node.ts';
import type { NodeArguments, NodeCommand, NodeReport } from './messages.ts';

function report(message: NodeReport): void {
  process.send?.(message);
}

function die(error: unknown): void {
  console.error(error);
  process.exit(1);
}

const args: NodeArguments = JSON.parse(process.argv[2] ?? '{}');
const node = new BenchNode(args, die);
const stop = (): void => void node.stop().then(() => process.exit(), die);
process.on('SIGTERM', stop);
process.on('disconnect', stop);
const { port, recoveryMs } = await node.open();
process.on('message', (command: NodeCommand) => {
  if (command.type === 'begin') {
    node.begin(command.ports);
    report({ type: 'begun', recoveryMs });
  } else {
    report({ type: 'status', ...node.status() });
  }
});
report({ type: 'listening', port });
