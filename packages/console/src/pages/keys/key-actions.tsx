import type { KvAnswer } from '@remora/gateway/http/json/kv';
import { useState } from 'preact/hooks';
import { currentOf, remove, write } from '../../api/kv.ts';
import { Action } from '../../kit/action.tsx';
import { Command } from '../../kit/command.tsx';
import { Dialog } from '../../kit/dialog.tsx';
import { Choice, Field } from '../../kit/form.tsx';
import { ErrorNote, Note } from '../../kit/states.tsx';
import { Text } from '../../kit/text.tsx';
import { announce } from '../../kit/toast.tsx';
import type { JsonBytes } from '../../logic/bytes.ts';
import { count } from '../../logic/format.ts';
import { type Form, formOf, indented, parsedValue, typedValue } from '../../logic/value.ts';
import { Difference } from './difference.tsx';

interface KeyActionProps {
  readonly name: JsonBytes;
  /** Undefined: the key does not exist. */
  readonly present: KvAnswer | undefined;
  done(): void;
}

export function EditKey(props: KeyActionProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="button" onClick={() => setOpen(true)}>
        {props.present === undefined ? 'Create' : 'Edit'}
      </button>
      {isOpen && <Editor {...props} close={() => setOpen(false)} />}
    </>
  );
}

/** The last value that the user has seen: a write succeeds only while it is the present one. */
interface Base {
  readonly modRevision: number;
  readonly value: JsonBytes | undefined;
}

const FORMS = [
  { value: 'text', text: 'Text' },
  { value: 'json', text: 'JSON' },
  { value: 'hex', text: 'Hex' },
] as const;

function Editor({ name, present, done, close }: KeyActionProps & { close(): void }) {
  const [base, setBase] = useState<Base>({ modRevision: present?.modRevision ?? 0, value: present?.value });
  const [form, setForm] = useState<Form>(present === undefined ? 'text' : formOf(present.value));
  const [typed, setTyped] = useState(() => shownValue(form, present?.value ?? ''));
  const [lease, setLease] = useState(present?.lease ?? '');
  const [error, setError] = useState<unknown>();
  const [isRunning, setRunning] = useState(false);
  const result = parsedValue(form, typed);
  const current = currentOf(error);

  const save = async (): Promise<void> => {
    if (!('value' in result)) return;
    setRunning(true);
    setError(undefined);
    try {
      const { modRevision } = await write(name, { value: result.value, ifModRevision: base.modRevision, lease });
      announce(`The key was written at revision ${count(modRevision)}.`, 'ok');
      close();
      done();
    } catch (cause) {
      setError(cause);
      setRunning(false);
    }
  };
  const change = (next: Form): void => {
    if ('value' in result && (next === 'hex' || typeof result.value === 'string'))
      setTyped(shownValue(next, result.value));
    setForm(next);
  };

  return (
    <Dialog title={present === undefined ? 'Create the key' : 'Edit the key'} isWide close={close}>
      <form
        class="dialog-body"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isRunning) void save();
        }}
      >
        <p>
          <Text value={name} max={300} />
        </p>
        <Choice label="Form of the value" value={form} options={FORMS} change={change} />
        <Field
          label="Value"
          isMono
          lines={14}
          value={typed}
          change={setTyped}
          error={'problem' in result ? result.problem : undefined}
        />
        <Field
          label="Lease"
          isMono
          hint="In hexadecimal: the key is deleted when the lease ends. Empty: it stays."
          value={lease}
          change={setLease}
        />
        {'value' in result && base.value !== undefined && <Difference before={base.value} after={result.value} />}
        {error !== undefined && <ErrorNote error={error} />}
        {current !== undefined && (
          <Note tone="warn">
            <p>
              {current === null
                ? 'Somebody has deleted the key. Saving creates it again.'
                : `Somebody else saved another value at revision ${count(current.modRevision)}.`}{' '}
              Your text stays in the field.
            </p>
            <button
              type="button"
              class="button"
              onClick={() => {
                const value = current !== null && 'value' in current ? current.value : undefined;
                setBase({ modRevision: current?.modRevision ?? 0, value });
                setError(undefined);
              }}
            >
              Compare my text with the present value
            </button>
          </Note>
        )}
        <Command
          words={['remora', 'kv', 'put', name, '-']}
          label="The same on the command line, without the comparison; the value comes from standard input"
        />
        <footer class="dialog-foot">
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="button button-primary" disabled={isRunning || !('value' in result)}>
            {isRunning ? 'Writing …' : base.modRevision === 0 ? 'Create' : 'Save'}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

function shownValue(form: Form, value: JsonBytes): string {
  return form === 'json' && typeof value === 'string' ? (indented(value) ?? value) : typedValue(form, value);
}

interface DeleteKeyProps extends KeyActionProps {
  readonly present: KvAnswer;
  /** Whether the key has changed since it was loaded. */
  readonly hasChanged: boolean;
}

export function DeleteKey({ name, present, hasChanged, done }: DeleteKeyProps) {
  return (
    <Action
      label="Delete"
      title="Delete this key?"
      isDangerous
      refusal={hasChanged ? 'The key has changed since you loaded it. Load the present value first.' : undefined}
      explanation={
        <>
          Deletes <Text value={name} max={200} /> as it is at revision {count(present.modRevision)}, which you see. If
          somebody changes it first, nothing is deleted. Its earlier values stay readable until the history is
          compacted.
        </>
      }
      command={() => ['remora', 'kv', 'delete', name]}
      run={async () => {
        const { deleted, revision } = await remove(name, present.modRevision);
        return deleted === 0
          ? 'The key did not exist any more.'
          : `The key was deleted at revision ${count(revision)}.`;
      }}
      done={done}
    />
  );
}
