// Servers as child processes: on loopback, with data in a directory of the story, ended by their own ids only.
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { until } from './until.mjs';

export const HOST = '127.0.0.1';

const alive = new Set();
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

/** Starts a program; with the stage's end it is killed, frozen or not. */
export function startProcess(stage, { program, args, logPath, ipc = false }) {
  const log = openSync(logPath, 'a');
  const child = spawn(program, args, { stdio: ['ignore', log, log, ...(ipc ? ['ipc'] : [])] });
  closeSync(log);
  alive.add(child);
  const exited = new Promise((resolve) => {
    child.once('error', resolve);
    child.once('exit', resolve);
  }).then(() => alive.delete(child));
  const kill = async () => {
    if (alive.has(child)) child.kill('SIGKILL');
    await exited;
  };
  stage.atEnd(kill);
  return {
    child,
    kill,
    freeze: () => child.kill('SIGSTOP'),
    thaw: () => child.kill('SIGCONT'),
    running: () => alive.has(child),
  };
}

export async function freePorts(count) {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    servers.map((server) => new Promise((done) => server.listen(0, HOST, () => done(server.address().port)))),
  );
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  return ports;
}

/** Resolves once something listens there. @throws Error when the process ends instead. */
export function untilListening(name, port, process) {
  return until(`${name} listens`, () => {
    if (!process.running()) throw new Error(`${name} has ended instead of getting ready`);
    return new Promise((resolve) => {
      const socket = connect(port, HOST, () => {
        socket.destroy();
        resolve(true);
      });
      socket.once('error', () => resolve(false));
    });
  });
}
