import type { ComponentChildren } from 'preact';
import { ApiError, adviceFor, messageOf } from '../api/errors.ts';
import type { Resource } from '../app/hooks.ts';
import { Text } from './text.tsx';

/** Says what went wrong, and what to do. */
export function ErrorNote({ error, retry }: { readonly error: unknown; readonly retry?: () => void }) {
  const advice = adviceFor(error);
  return (
    <div class="note note-bad" role="alert">
      <p>
        {error instanceof ApiError && <code class="code">{error.code}</code>}{' '}
        <Text value={messageOf(error)} max={600} />
      </p>
      {advice !== undefined && <p class="muted">{advice}</p>}
      {retry !== undefined && (
        <button type="button" class="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Note({
  tone = 'info',
  children,
}: {
  readonly tone?: 'info' | 'warn';
  readonly children: ComponentChildren;
}) {
  return <div class={`note note-${tone}`}>{children}</div>;
}

export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** Takes the place of lines that are being read. */
export function Loading({ lines = 6 }: { readonly lines?: number }) {
  return (
    <div class="loading" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, line) => (
        <div key={line} class="loading-line" />
      ))}
    </div>
  );
}

interface LoadedProps<Value> {
  readonly of: Resource<Value>;
  readonly lines?: number;
  children(value: Value): ComponentChildren;
}

/** Shows a resource once it is read. An error stands above the last answer, which stays. */
export function Loaded<Value>({ of, lines, children }: LoadedProps<Value>) {
  const { data, error, reload } = of;
  return (
    <>
      {error !== undefined && <ErrorNote error={error} retry={reload} />}
      {data !== undefined
        ? children(data)
        : error === undefined && <Loading {...(lines === undefined ? {} : { lines })} />}
    </>
  );
}
