import type { CanJson } from '@remora/gateway/http/json/users';
import { useState } from 'preact/hooks';
import { can } from '../../api/users.ts';
import { Badge } from '../../kit/badge.tsx';
import { Command } from '../../kit/command.tsx';
import { Select } from '../../kit/form.tsx';
import { Card } from '../../kit/page.tsx';
import { ErrorNote } from '../../kit/states.tsx';
import { Text } from '../../kit/text.tsx';
import { type Permission, permissionOf, permissionWords } from '../../logic/permission.ts';
import { isWhole, NO_PERMISSION, PermissionForm } from './permission-form.tsx';
import { PermissionText } from './permission-text.tsx';

/** Whether a user may do something, and why. */
export function Can({ users }: { readonly users: readonly string[] }) {
  const [chosen, setUser] = useState<string>();
  const [typed, setTyped] = useState(NO_PERMISSION);
  const [answer, setAnswer] = useState<CanJson>();
  const [error, setError] = useState<unknown>();
  const user = chosen ?? users[0] ?? '';
  if (users.length === 0) return null;
  const permission = permissionOf(typed);
  const ask = async (): Promise<void> => {
    setError(undefined);
    try {
      setAnswer(await can(user, permission));
    } catch (cause) {
      setAnswer(undefined);
      setError(cause);
    }
  };
  return (
    <Card title="May a user do something?">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (isWhole(typed)) void ask();
        }}
      >
        <Select
          label="User"
          value={user}
          options={users.map((name) => ({ value: name, text: name }))}
          change={setUser}
        />
        <PermissionForm value={typed} change={setTyped} />
        <div class="row">
          <button type="submit" class="button" disabled={!isWhole(typed)}>
            Ask
          </button>
        </div>
        {error !== undefined && <ErrorNote error={error} />}
        {answer !== undefined && <Answer answer={answer} />}
        {isWhole(typed) && <Command words={['remora', 'auth', 'can', user, ...permissionWords(permission)]} />}
      </form>
    </Card>
  );
}

function Answer({ answer }: { readonly answer: CanJson }) {
  const { allowed, why, through, missing, sufficientRoles } = answer;
  return (
    <div class="stack" role="status">
      <p class="row">
        {allowed ? <Badge tone="ok">allowed</Badge> : <Badge tone="bad">not allowed</Badge>}
        <Text value={why} max={400} />
      </p>
      <Grants title="Through" grants={through} />
      <Grants title="To allow it, grant" grants={missing} />
      {sufficientRoles.length > 0 && (
        <p>
          Roles that allow it: <Text value={sufficientRoles.join(', ')} max={400} />
        </p>
      )}
    </div>
  );
}

function Grants({ title, grants }: { readonly title: string; readonly grants: CanJson['through'] }) {
  if (grants.length === 0) return null;
  return (
    <ul class="reasons">
      {grants.map((grant) => {
        const permission = permissionIn(grant);
        return (
          <li key={JSON.stringify(grant)} class="parts">
            <span class="muted">{title}</span>
            {grant.role !== undefined && (
              <span>
                role <Text value={grant.role} max={60} />
              </span>
            )}
            {permission === undefined ? 'everything' : <PermissionText permission={permission} />}
          </li>
        );
      })}
    </ul>
  );
}

function permissionIn({ keys, locks }: CanJson['through'][number]): Permission | undefined {
  if (keys !== undefined) return { keys };
  return locks === undefined ? undefined : { locks };
}
