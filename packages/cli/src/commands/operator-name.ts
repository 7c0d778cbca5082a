import { hostname, userInfo } from 'node:os';

/**
 * Who runs this command, as user and host. Of a user whom the system does not know, as in many containers, the number.
 */
export function operatorName(readUser: () => string = () => userInfo().username): string {
  let user: string;
  try {
    user = readUser();
  } catch {
    user = String(process.getuid?.() ?? 'unknown');
  }
  return `${user}@${hostname()}`;
}
