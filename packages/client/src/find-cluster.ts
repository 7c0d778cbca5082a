import { formatDurationMs, ServiceError, sleep, toServiceError } from '@remora/base';
import { pipeView } from '@remora/protocol';
import type { ClientSettings } from './client-options.ts';
import { isLasting } from './transport/request-errors.ts';
import type { Requester } from './transport/requester.ts';

/** The pause before the cluster is looked for again, in ms. */
const LOOK_AGAIN_MS = 500;

/** Finds the cluster. A lazy client looks for it until it is closed, or until there is no use in it. */
export async function findCluster(requester: Requester, settings: ClientSettings): Promise<string> {
  const { clock } = requester.ports;
  for (;;) {
    try {
      const { clusterId } = await requester.request(pipeView, undefined, { timeoutMs: settings.connectTimeoutMs });
      requester.followLeader();
      if (settings.discover) requester.discovery.begin();
      return clusterId;
    } catch (error) {
      const failure = toServiceError(error);
      if (!settings.lazy || requester.closed || isLasting(failure)) throw notFound(failure, settings);
      await sleep(clock, LOOK_AGAIN_MS);
    }
  }
}

const NAMED_MAX = 5;

/**
 * For somebody whose first program finds no cluster: where it looked, and what to check. Whether connections were
 * refused or nothing was heard makes no difference: the code is UNAVAILABLE.
 */
function notFound(error: ServiceError, { connectTimeoutMs, requester: { endpoints } }: ClientSettings): ServiceError {
  if (error.code !== 'UNAVAILABLE' && error.code !== 'DEADLINE_EXCEEDED') return error;
  const named = endpoints.slice(0, NAMED_MAX).join(', ');
  const others = endpoints.length > NAMED_MAX ? ` and ${endpoints.length - NAMED_MAX} others` : '';
  return new ServiceError(
    'UNAVAILABLE',
    `no gateway answered within ${formatDurationMs(connectTimeoutMs)} at ${named}${others} (${error.message}); ` +
      'check that a cluster runs there, and that `endpoints` has its client ports',
    { cause: error.cause ?? error },
  );
}
