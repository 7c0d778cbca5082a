import { useState } from 'preact/hooks';
import { Choice } from '../../kit/form.tsx';
import { Scroll } from '../../kit/scroll.tsx';
import { Text } from '../../kit/text.tsx';
import { VirtualList } from '../../kit/virtual-list.tsx';
import { byteLength, type JsonBytes, toBytes } from '../../logic/bytes.ts';
import { bytes } from '../../logic/format.ts';
import { hexLine, hexLines } from '../../logic/hex.ts';
import { type Form, formOf, indented } from '../../logic/value.ts';

/** Longer text is shown in part: laying out a million characters takes the browser seconds. */
const TEXT_MAX = 100_000;

/** A value as text, as JSON, and byte by byte. */
export function ValueView({ value }: { readonly value: JsonBytes }) {
  const [chosen, setForm] = useState<Form>();
  const json = typeof value === 'string' ? indented(value) : undefined;
  const forms = [
    ...(typeof value === 'string' ? [{ value: 'text', text: 'Text' } as const] : []),
    ...(json === undefined ? [] : [{ value: 'json', text: 'JSON' } as const]),
    { value: 'hex', text: 'Hex' } as const,
  ];
  const best = formOf(value);
  const form = forms.find((each) => each.value === chosen)?.value ?? best;
  return (
    <>
      <div class="row spread">
        <Choice label="Form of the value" value={form} options={forms} change={setForm} />
        <span class="muted">{bytes(byteLength(value))}</span>
      </div>
      {form === 'hex' ? (
        <Hex value={value} />
      ) : (
        <Scroll class="value" label="Value">
          {value === '' ? (
            <span class="muted">(empty)</span>
          ) : (
            <Text value={form === 'json' ? (json ?? value) : value} max={TEXT_MAX} isBlock />
          )}
        </Scroll>
      )}
    </>
  );
}

function Hex({ value }: { readonly value: JsonBytes }) {
  const all = toBytes(value);
  const lines = Array.from({ length: hexLines(all) }, (_, line) => line);
  return (
    <div class="hex">
      <VirtualList
        label="Bytes of the value"
        rows={lines}
        rowHeight={20}
        keyOf={(line) => line}
        draw={(line) => {
          const { offset, hex, ascii } = hexLine(all, line);
          return (
            <code class="hex-line">
              <span class="muted">{offset}</span> {hex} <span class="hex-ascii">{ascii}</span>
            </code>
          );
        }}
      />
    </div>
  );
}
