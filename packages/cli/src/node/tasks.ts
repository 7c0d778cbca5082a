import { type Logger, ServiceError, unreachable } from '@remora/base';
import type { Store } from '@remora/dataserver';
import type { NodeTask } from '@remora/protocol';
import type { MasterReplica } from './master-replica.ts';

/** Performs a task of the master; a task that cannot be done now is sent again. */
export function performTask(
  task: NodeTask,
  { store, seat }: { readonly store: Store | undefined; readonly seat: MasterReplica },
  { logger, onFailure }: { readonly logger: Logger; readonly onFailure: (error: unknown) => void },
): void {
  switch (task.type) {
    case 'createReplica':
      store?.createReplica(task.descriptor, task.replicaId).catch((error: unknown) => {
        if (error instanceof ServiceError) logger.warn({ error: error.message }, 'could not create a replica yet');
        else onFailure(error);
      });
      return;
    case 'removeReplica':
      return store?.removeReplica(task);
    case 'order':
      return store?.heartbeat.carryOut(task.order);
    case 'becomeMaster':
      return seat.become();
    case 'ceaseMaster':
      return seat.cease();
    default:
      return unreachable(task);
  }
}
