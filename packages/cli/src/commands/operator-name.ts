import { hostname, userInfo } from 'node:os';

/** The user and host that run this command. If the system does not know the user, as in many containers, the number. */
export function operatorName(readUser: () => string = () => userInfo().username): string {
  let user: string;
  try {
    user = readUser();
  } catch {
    user = String(process.getuid?.() ?? 'unknown');
  }
  return `${user}@${hostname()}`;
}
