import { KnownAuth } from '@remora/auth';
import type { Clock, Logger } from '@remora/base';
import type { NodeRecords } from '../node-records.ts';

export interface KeptUsersDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly records: Pick<NodeRecords, 'knownAuth' | 'rememberAuth'>;
  /** Asks the masters soon. */
  readonly hurry: () => void;
}

/** What a node knows of users and roles, and keeps on its disk (known-auth.ts KA6). It also works without the disk. */
export function keptUsers({ clock, logger, records, hurry }: KeptUsersDeps): KnownAuth {
  return new KnownAuth({
    clock,
    hurry,
    remembered: records.knownAuth,
    remember(image) {
      try {
        records.rememberAuth(image);
      } catch (error) {
        logger.warn({ error: String(error) }, 'users and roles could not be written to the data directory');
      }
    },
  });
}
