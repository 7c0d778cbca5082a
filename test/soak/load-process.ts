import { fileURLToPath } from 'node:url';
import { Child } from '../support/child.ts';

const LAUNCHER = fileURLToPath(new URL('main.mjs', import.meta.url));

/**
 * The programs that produce load. Each runs in a separate process, so that none delays another one or the measurement.
 */
export const LOADS = ['load:raw', 'load:holders', 'load:mixed', 'load:open', 'load:attack'] as const;
export type LoadName = (typeof LOADS)[number];

/** Starts a load with the given `spec`. It logs into `dir`. `nodeArguments` are for Node itself. */
export function startLoad(name: LoadName, spec: object, dir: string, nodeArguments: readonly string[] = []): Child {
  return new Child({
    command: [process.execPath, ...nodeArguments, LAUNCHER, name, JSON.stringify(spec)],
    cwd: dir,
    logPath: `${dir}/${name.replace(':', '-')}.log`,
  });
}

/** In the process of a load: resolves when the parent sends `type`. */
export function told(type: string): Promise<void> {
  return new Promise((resolve) => {
    const onMessage = (message: unknown): void => {
      if (typeof message !== 'object' || message === null || !('type' in message) || message.type !== type) return;
      process.off('message', onMessage);
      resolve();
    };
    process.on('message', onMessage);
  });
}

/** In the process of a load: sends a message to the parent, and resolves when it was sent. */
export function tell(message: object): Promise<void> {
  return new Promise((resolve, reject) => {
    process.send?.(message, undefined, {}, (error) => (error === null ? resolve() : reject(error)));
  });
}
