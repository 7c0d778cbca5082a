import type { AuthChangeRequest, AuthClient } from 'remora/admin';
import type { Shell } from '../../shell.ts';
import { print, type View, withAdmin } from '../admin/run.ts';
import type { ConnectionFlags } from '../connection.ts';

/** Connects, asks, and prints. */
export function showAuth(
  flags: ConnectionFlags,
  shell: Shell,
  look: (client: AuthClient) => Promise<View>,
): Promise<void> {
  return withAdmin(flags, async ({ auth }) => print(await look(auth), flags, shell));
}

/** Connects, makes a change, and prints what was done. */
export function changeAuth(
  flags: ConnectionFlags,
  shell: Shell,
  { change, done }: { readonly change: AuthChangeRequest; readonly done: View },
): Promise<void> {
  return showAuth(flags, shell, async (client) => {
    await client.change(change);
    return done;
  });
}
