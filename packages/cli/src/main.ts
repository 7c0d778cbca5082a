// The entry point of the `remora` command.
import { runCommandLine } from './program.ts';
import { processShell } from './shell.ts';

const loadStartNode = async () => (await import('./node/start-node.ts')).startNode;
process.exitCode = await runCommandLine(process.argv.slice(2), processShell, loadStartNode);
