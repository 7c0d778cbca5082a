import { identityOf, type JsonBytes, toBytes } from '../logic/bytes.ts';
import { piecesOf } from '../logic/visible-text.ts';

/** Characters shown where a value stands beside others; the whole value is on its own page. */
const SHOWN_MAX = 200;

interface TextProps {
  readonly value: JsonBytes;
  /** The largest number of characters to show. */
  readonly max?: number;
  /** Keeps line feeds and tabs. */
  readonly isBlock?: boolean;
}

/**
 * Text that the console has not written: names, keys, values, attributes, messages. It never becomes markup; characters
 * that are invisible, or that reorder their neighbours, are shown by their codes; what is not UTF-8 is shown in
 * hexadecimal.
 */
export function Text({ value, max = SHOWN_MAX, isBlock = false }: TextProps) {
  if (typeof value !== 'string') return <BinaryText key={identityOf(value)} value={value} max={max} />;
  const shown = value.length > max ? shortened(value, max) : value;
  const pieces = piecesOf(shown, { keepLines: isBlock });
  return (
    <bdi class={isBlock ? 'text text-block' : 'text'}>
      {pieces.map((piece, at) =>
        piece.kind === 'plain' ? (
          piece.text
        ) : (
          <span key={at} class="mark" title={piece.meaning}>
            {piece.text}
          </span>
        ),
      )}
      {shown.length < value.length && (
        <span class="more">… {(value.length - shown.length).toLocaleString('en-US')} more</span>
      )}
    </bdi>
  );
}

/** Half of a surrogate pair at the end would be shown as a replacement character. */
function shortened(value: string, max: number): string {
  const isSplit = /[\uD800-\uDBFF]/.test(value.charAt(max - 1));
  return value.slice(0, isSplit ? max - 1 : max);
}

function BinaryText({ value, max }: { readonly value: JsonBytes; readonly max: number }) {
  const bytes = toBytes(value);
  const shown = Array.from(bytes.subarray(0, Math.ceil(max / 3)), (byte) => byte.toString(16).padStart(2, '0')).join(
    ' ',
  );
  return (
    <span class="text binary" title="not UTF-8: shown in hexadecimal">
      <span class="mark">hex</span> {shown}
      {bytes.length > Math.ceil(max / 3) && '…'}
    </span>
  );
}
