/** Who is asking: logging in and out, and `/v1/whoami`. Everybody may call them. */
import { ROOT, TOKEN_LIFE_MS } from '@remora/auth';
import type { AuthAdmin } from '../../authorisation/auth-admin.ts';
import { fromRole } from '../../authorisation/auth-messages.ts';
import type { LogInJson, LogOutJson, WhoAmIJson } from '../json/access.ts';
import { type HttpCall, type Route, reading } from '../route.ts';
import { onlyThese } from '../targets.ts';
import { permissionsJson } from './permission-json.ts';
import { clearCookie, setCookie } from './session-cookie.ts';

export const ACCESS_ROUTES: readonly Route[] = [
  {
    ...{ method: 'POST', path: '/v1/log-in' },
    async handle({ auth }, call) {
      const { user, token } = await logIn(auth, call);
      const headers = { 'set-cookie': setCookie(token, call) };
      return { status: 200, headers, body: user };
    },
  },
  {
    ...{ method: 'POST', path: '/v1/log-out' },
    async handle(_deps, call) {
      onlyThese(call.target.query, []);
      call.fields.end();
      const body: LogOutJson = { loggedOut: true };
      return { status: 200, headers: { 'set-cookie': clearCookie(call) }, body };
    },
  },
  reading('/v1/whoami', async ({ auth }, call) => {
    onlyThese(call.target.query, []);
    return whoAmI(auth, call);
  }),
];

/** The token goes into the cookie and nowhere else (session-cookie.ts SC1). */
async function logIn(
  auth: AuthAdmin,
  { target, fields, address = '' }: HttpCall,
): Promise<{ readonly user: LogInJson; readonly token: string }> {
  onlyThese(target.query, []);
  const user = fields.required('user', fields.text('user'));
  const password = fields.required('password', fields.text('password'));
  fields.end();
  const token = await auth.logIn({ user, password, door: 'http', address }, true);
  const { roles } = auth.caller({ name: user, method: 'password' });
  return { token, user: { user, isRoot: roles.some(isRoot), expiresInMs: TOKEN_LIFE_MS } };
}

function whoAmI(auth: AuthAdmin, { principal }: HttpCall): WhoAmIJson {
  const { enabled: authentication, exists, roles } = auth.caller(principal);
  const permissions = roles.map((role) => permissionsJson(fromRole(role)));
  return {
    authentication,
    ...(principal?.name === undefined ? {} : { user: principal.name }),
    ...{ exists, isRoot: roles.some(isRoot), how: principal?.method ?? 'none' },
    roles: roles.map(({ name }) => name),
    permissions: {
      keys: permissions.flatMap(({ keys }) => keys),
      locks: permissions.flatMap(({ locks }) => locks),
    },
  };
}

function isRoot({ name }: { readonly name: string }): boolean {
  return name === ROOT;
}
