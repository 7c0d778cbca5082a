// The entry point of the `remora` command.
import './v8-flags.ts';
import { runCommandLine } from './program.ts';
import { endWhenNobodyReads, goOnWhenNobodyListens, processShell } from './shell.ts';

const loadStartNode = async () => (await import('./node/start-node.ts')).startNode;
endWhenNobodyReads(process.stdout);
goOnWhenNobodyListens(process.stderr);
process.exitCode = await runCommandLine(process.argv.slice(2), processShell, loadStartNode);
