import { FIRST_AUTH, KnownAuth } from '@remora/auth';
import type { Clock } from '@remora/base';
import { AuthorisedBackend } from '../../src/authorisation/authorised-backend.ts';
import type { ClearedBackend } from '../../src/authorisation/cleared-backend.ts';

/** Ranges, as doors see them while authentication is off. */
export function openBackend(ranges: ClearedBackend, clock: Clock): AuthorisedBackend {
  const known = new KnownAuth({ clock, hurry: () => {} });
  known.learn(FIRST_AUTH, clock.monotonicMs());
  return new AuthorisedBackend({ ranges, known, clock });
}
