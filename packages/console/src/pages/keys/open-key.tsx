import { useState } from 'preact/hooks';
import { go } from '../../app/router.ts';
import { Field } from '../../kit/form.tsx';
import { Text } from '../../kit/text.tsx';
import type { JsonBytes } from '../../logic/bytes.ts';
import { keyAddress } from './key-address.ts';

/** Opens a key that no list has, because it was deleted. */
export function OpenByName({ prefix }: { readonly prefix: JsonBytes }) {
  const [typed, setTyped] = useState(typeof prefix === 'string' ? prefix : '');
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (typed !== '') go('keys', { prefix, key: typed });
      }}
    >
      <Field
        label="Open a key by its name"
        isMono
        hint="Deleted keys are not listed. Their earlier values can be read until the history is compacted."
        value={typed}
        change={setTyped}
      />
      <div>
        <button type="submit" class="button" disabled={typed === ''}>
          Open
        </button>
      </div>
    </form>
  );
}

/** A link to the key that has exactly this name, for a search that did not find it. */
export function ExactKey({ name }: { readonly name: string }) {
  return (
    <a href={keyAddress(name)}>
      Open exactly <Text value={name} max={80} />, and its history
    </a>
  );
}
