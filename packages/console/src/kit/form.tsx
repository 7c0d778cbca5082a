import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

interface FieldProps {
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly value: string;
  change(value: string): void;
  readonly type?: 'text' | 'password' | 'number' | 'search';
  readonly placeholder?: string;
  readonly isRequired?: boolean;
  readonly isMono?: boolean;
  readonly autocomplete?: string;
  /** Lines of a larger field; without it, the field has one line. */
  readonly lines?: number;
  readonly error?: string | undefined;
  readonly hasFocus?: boolean;
}

export function Field(props: FieldProps) {
  const { label, hint, value, change, type = 'text', lines, error, isMono, isRequired = false } = props;
  const id = useId();
  const shared = {
    id,
    value,
    class: isMono ? 'input mono' : 'input',
    required: isRequired,
    placeholder: props.placeholder ?? '',
    spellcheck: false,
    'aria-invalid': error !== undefined,
    'aria-describedby': `${id}-hint`,
    ...(props.hasFocus ? { autoFocus: true } : {}),
  } as const;
  return (
    <div class="field">
      <label for={id}>
        {label}
        {isRequired && <span class="muted"> (required)</span>}
      </label>
      {lines === undefined ? (
        <input
          {...shared}
          type={type as 'text'}
          autocomplete={props.autocomplete ?? 'off'}
          onInput={(event) => change(event.currentTarget.value)}
        />
      ) : (
        <textarea {...shared} rows={lines} onInput={(event) => change(event.currentTarget.value)} />
      )}
      <div id={`${id}-hint`} class={error === undefined ? 'field-hint' : 'field-hint field-error'}>
        {error ?? hint}
      </div>
    </div>
  );
}

interface SelectProps<Value extends string> {
  readonly label: string;
  readonly value: Value;
  readonly options: readonly { readonly value: Value; readonly text: string }[];
  change(value: NoInfer<Value>): void;
  /** Shows the label to screen readers only. */
  readonly isBare?: boolean;
}

export function Select<Value extends string>({ label, value, options, change, isBare = false }: SelectProps<Value>) {
  const id = useId();
  return (
    <div class={isBare ? 'field-bare' : 'field'}>
      <label for={id} class={isBare ? 'outside' : ''}>
        {label}
      </label>
      <select
        id={id}
        class="input"
        value={value}
        onChange={(event) => {
          const chosen = options.find((option) => option.value === event.currentTarget.value);
          if (chosen !== undefined) change(chosen.value);
        }}
      >
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.text}
          </option>
        ))}
      </select>
    </div>
  );
}

interface SearchProps {
  readonly label: string;
  readonly value: string;
  readonly placeholder?: string;
  change(value: string): void;
  /** What Enter does. */
  submit?(): void;
}

/** The search of a page: `/` moves the focus there. */
export function Search({ label, value, placeholder = label, change, submit }: SearchProps) {
  return (
    <div class="search">
      <input
        type="search"
        class="input"
        data-search
        aria-label={label}
        placeholder={placeholder}
        value={value}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => change(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') event.currentTarget.blur();
          if (event.key === 'Enter') submit?.();
        }}
      />
      <kbd title="The key that moves here">/</kbd>
    </div>
  );
}

interface TabsProps<Value extends string> {
  readonly label: string;
  readonly value: Value;
  readonly options: readonly { readonly value: Value; readonly text: string }[];
  change(value: NoInfer<Value>): void;
}

/** A choice of a few: buttons that are pressed. */
export function Choice<Value extends string>({ label, value, options, change }: TabsProps<Value>) {
  return (
    <fieldset class="choice">
      <legend class="outside">{label}</legend>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          class="choice-button"
          aria-pressed={option.value === value}
          onClick={() => change(option.value)}
        >
          {option.text}
        </button>
      ))}
    </fieldset>
  );
}
