import { useState } from 'preact/hooks';
import { logIn } from '../api/access.ts';
import { Field } from '../kit/form.tsx';
import { ErrorNote, Note } from '../kit/states.tsx';

export function LogIn({ hasEnded }: { readonly hasEnded: boolean }) {
  const [user, setUser] = useState('');
  const [password, setPassword] = useState('');
  const [error, setError] = useState<unknown>();
  const [isRunning, setRunning] = useState(false);

  const submit = async (): Promise<void> => {
    setRunning(true);
    setError(undefined);
    try {
      await logIn(user, password);
    } catch (cause) {
      setError(cause);
      setRunning(false);
    }
  };

  return (
    <main class="log-in" id="main">
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <h1>Log in to Remora</h1>
        {hasEnded && <Note>Your log-in has ended. Log in again to continue where you were.</Note>}
        <Field label="User" value={user} change={setUser} autocomplete="username" isRequired hasFocus />
        <Field
          label="Password"
          type="password"
          value={password}
          change={setPassword}
          autocomplete="current-password"
          isRequired
        />
        {error !== undefined && <ErrorNote error={error} />}
        <button type="submit" class="button button-primary" disabled={isRunning || user === '' || password === ''}>
          {isRunning ? 'Logging in …' : 'Log in'}
        </button>
      </form>
    </main>
  );
}
