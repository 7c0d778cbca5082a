import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { connection } from '../api/connection.ts';
import { ApiError, messageOf, UNREACHABLE } from '../api/errors.ts';
import { useStore } from '../app/hooks.ts';
import { OtherGateways } from '../app/other-gateways.tsx';
import type { Word } from '../logic/shell.ts';
import { Command } from './command.tsx';
import { Dialog } from './dialog.tsx';
import { Field, Select } from './form.tsx';
import { ErrorNote } from './states.tsx';
import { announce } from './toast.tsx';

export interface ActionField {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  readonly initial?: string;
  readonly isRequired?: boolean;
  readonly placeholder?: string;
  readonly type?: 'text' | 'password' | 'number';
  readonly lines?: number;
  /** The values to choose from; without them, any text. */
  readonly options?: readonly string[];
  /** Returns what is wrong with the value. */
  check?(value: string): string | undefined;
}

export type Values = Readonly<Record<string, string>>;

export interface ActionProps {
  /** On the button: a verb. */
  readonly label: string;
  /** A question, or what is done: the title of the dialog. */
  readonly title: string;
  /** What happens, and what it does not protect from. */
  readonly explanation: ComponentChildren;
  readonly fields?: readonly ActionField[];
  readonly isDangerous?: boolean;
  /** To be typed before the action can be taken. */
  readonly confirmation?: string;
  readonly isSmall?: boolean;
  /** Why the action is not possible, as a missing permission. */
  readonly refusal?: string | undefined;
  command(values: Values): readonly Word[];
  /** Returns what to say of the effect. */
  run(values: Values): Promise<string>;
  /** Called after success. */
  done?(): void;
}

/** A button with a dialog that explains, asks for what is needed, and shows the command that does the same. */
export function Action(props: ActionProps) {
  const { label, isDangerous = false, isSmall = false, refusal } = props;
  const [isOpen, setOpen] = useState(false);
  const kind = isDangerous ? 'button button-danger' : 'button';
  return (
    <>
      <button
        type="button"
        class={isSmall ? `${kind} button-small` : kind}
        aria-disabled={refusal !== undefined}
        title={refusal ?? ''}
        onClick={() => (refusal === undefined ? setOpen(true) : announce(refusal, 'warn'))}
      >
        {label}
      </button>
      {isOpen && <ActionDialog {...props} close={() => setOpen(false)} />}
    </>
  );
}

export function ActionDialog(props: ActionProps & { close(): void }) {
  const { label, title, explanation, fields = [], isDangerous = false, confirmation, close } = props;
  const [values, setValues] = useState<Values>(() => initialValues(fields));
  const [typed, setTyped] = useState('');
  const [error, setError] = useState<unknown>();
  const [isRunning, setRunning] = useState(false);
  const problems = problemsOf(fields, values);
  const { isUp, again } = useStore(connection);
  // The node answers again, and what was not sent can be tried again.
  useEffect(() => setError((before: unknown) => (isUnreachable(before) ? undefined : before)), [again]);
  const isReady = problems.size === 0 && (confirmation === undefined || typed === confirmation);

  const run = async (): Promise<void> => {
    setRunning(true);
    setError(undefined);
    try {
      announce(await props.run(values), 'ok');
      close();
      props.done?.();
    } catch (cause) {
      setError(cause ?? messageOf(cause));
    } finally {
      setRunning(false);
    }
  };

  return (
    <Dialog title={title} close={close}>
      <form
        class="dialog-body"
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady && !isRunning) void run();
        }}
      >
        <div class="explanation">{explanation}</div>
        {fields.map((field, at) => (
          <ActionInput
            key={field.name}
            field={field}
            hasFocus={at === 0}
            value={values[field.name] ?? ''}
            problem={problems.get(field.name)}
            change={(value) => setValues((before) => ({ ...before, [field.name]: value }))}
          />
        ))}
        {confirmation !== undefined && (
          <Field label={`Type ${confirmation} to confirm`} isMono value={typed} change={setTyped} />
        )}
        <Command words={props.command(values)} />
        {error !== undefined && <ErrorNote error={error} />}
        {!isUp && <OtherGateways />}
        <footer class="dialog-foot">
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
          <button
            type="submit"
            class={isDangerous ? 'button button-danger-solid' : 'button button-primary'}
            disabled={!isReady || isRunning}
          >
            {isRunning ? 'Working …' : label}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

function isUnreachable(error: unknown): boolean {
  return error instanceof ApiError && error.code === UNREACHABLE;
}

interface ActionInputProps {
  readonly field: ActionField;
  readonly value: string;
  readonly problem: string | undefined;
  readonly hasFocus: boolean;
  change(value: string): void;
}

function ActionInput({ field, value, problem, hasFocus, change }: ActionInputProps) {
  const { name: _, check: __, initial: ___, options, ...shown } = field;
  if (options !== undefined) {
    return (
      <Select
        label={field.label}
        value={value}
        options={options.map((option) => ({ value: option, text: option }))}
        change={change}
      />
    );
  }
  return (
    <Field {...shown} hasFocus={hasFocus} value={value} error={value === '' ? undefined : problem} change={change} />
  );
}

function initialValues(fields: readonly ActionField[]): Values {
  return Object.fromEntries(fields.map(({ name, initial = '' }) => [name, initial]));
}

function problemsOf(fields: readonly ActionField[], values: Values): ReadonlyMap<string, string> {
  const problems = new Map<string, string>();
  for (const { name, isRequired = false, check } of fields) {
    const value = values[name] ?? '';
    const problem = value.trim() === '' ? (isRequired ? 'This is required.' : undefined) : check?.(value);
    if (problem !== undefined) problems.set(name, problem);
  }
  return problems;
}
