import { fork } from 'node:child_process';
import type { ClusterNews, ClusterSpec } from './cluster/cluster-main.ts';

export interface RunningCluster {
  /** `host:port` of its first node. */
  readonly http: string;
  stop(): void;
}

/** Most of what the cluster has is young: a large space for it halves the time of garbage collection. */
const EXEC_ARGV = ['--enable-source-maps', '--max-old-space-size=8000', '--max-semi-space-size=64'];

/** Builds a simulated cluster in a process of its own, whose program is `file`. Resolves when it serves. */
export async function startCluster(
  file: string,
  spec: ClusterSpec,
  say: (line: string) => void,
): Promise<RunningCluster> {
  const beganMs = performance.now();
  const child = fork(file, [JSON.stringify(spec)], { execArgv: EXEC_ARGV });
  const tell = (text: string): void => say(`${((performance.now() - beganMs) / 1_000).toFixed(0)} s: ${text}`);
  const seen: Moment[] = [];
  const http = await new Promise<string>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the simulated cluster has ended with exit code ${code}`)));
    child.on('message', (news: ClusterNews) => {
      if (news.type === 'progress') tell(news.text);
      else if (news.type === 'ready') resolve(news.http);
      else seen.push({ atMs: performance.now(), virtualMs: news.virtualMs });
    });
  });
  tell(`the cluster serves http://${http}/console/`);
  return {
    http,
    stop() {
      const [first, last] = [seen[0], seen.at(-1)];
      if (first !== undefined && last !== undefined && last !== first) tell(paceText(first, last));
      child.removeAllListeners('exit');
      child.kill('SIGKILL');
    },
  };
}

interface Moment {
  readonly atMs: number;
  readonly virtualMs: number;
}

function paceText(first: Moment, last: Moment): string {
  const share = (last.virtualMs - first.virtualMs) / (last.atMs - first.atMs);
  return `a second of the cluster has taken ${(1 / share).toFixed(1)} s`;
}
