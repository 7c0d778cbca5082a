import { useCallback, useEffect, useState } from 'preact/hooks';
import { SEPARATOR, tree } from '../../api/kv.ts';
import { useResource } from '../../app/hooks.ts';
import { Empty, ErrorNote, Loading } from '../../kit/states.tsx';
import { Text } from '../../kit/text.tsx';
import { VirtualList } from '../../kit/virtual-list.tsx';
import { identityOf, type JsonBytes } from '../../logic/bytes.ts';
import { bytes } from '../../logic/format.ts';
import { type Folders, foldersAbove, type TreeLine, treeLines, withPage } from '../../logic/key-tree.ts';
import { keyAddress } from './key-address.ts';

interface KeyTreeProps {
  readonly prefix: JsonBytes;
  readonly selected: JsonBytes | undefined;
}

/** Folders open in place; each is read when it is opened, and large ones part by part. */
export function KeyTree({ prefix, selected }: KeyTreeProps) {
  const [folders, setFolders] = useState<Folders>(new Map());
  const [open, setOpen] = useState<ReadonlySet<string>>(() => openAtFirst(selected));
  const [error, setError] = useState<unknown>();

  const read = useCallback(async (folder: JsonBytes, after?: string): Promise<void> => {
    try {
      const answer = await tree(folder, after, new AbortController().signal);
      setFolders((before) => withPage(before, folder, answer, after));
      setError(undefined);
    } catch (cause) {
      setError(cause);
    }
  }, []);

  const root = useResource(identityOf(prefix), (signal) => tree(prefix, undefined, signal));
  useEffect(() => {
    if (root.data !== undefined)
      setFolders((before) => withPage(before, prefix, root.data as NonNullable<typeof root.data>));
  }, [root.data, prefix]);
  useEffect(() => {
    for (const folder of selected === undefined ? [] : foldersAbove(selected, SEPARATOR)) void read(folder);
  }, [selected, read]);

  const toggle = (key: JsonBytes): void => {
    const id = identityOf(key);
    const next = new Set(open);
    if (!next.delete(id)) next.add(id);
    setOpen(next);
    if (next.has(id)) void read(key);
  };

  if (root.error !== undefined) return <ErrorNote error={root.error} retry={root.reload} />;
  const lines = treeLines(folders, open, prefix);
  if (lines[0]?.type === 'loading') return <Loading lines={10} />;
  if (lines.length === 0) {
    return (
      <Empty title="There are no keys here.">
        <p>
          To write one: <code>remora kv put greeting hello</code>
        </p>
      </Empty>
    );
  }
  const isSelected = (line: TreeLine): boolean =>
    line.type === 'entry' &&
    line.entry.kind === 'key' &&
    selected !== undefined &&
    identityOf(selected) === identityOf(line.entry.key);
  return (
    <>
      {error !== undefined && <ErrorNote error={error} />}
      <VirtualList
        label="Keys"
        rows={lines}
        keyOf={({ id }) => id}
        draw={(line) => <Line line={line} isSelected={isSelected(line)} toggle={toggle} more={read} />}
      />
    </>
  );
}

function openAtFirst(selected: JsonBytes | undefined): ReadonlySet<string> {
  return new Set(selected === undefined ? [] : foldersAbove(selected, SEPARATOR).map(identityOf));
}

interface LineProps {
  readonly line: TreeLine;
  readonly isSelected: boolean;
  toggle(key: JsonBytes): void;
  more(folder: JsonBytes, after: string): Promise<void>;
}

const INDENT = 16;

function Line({ line, isSelected, toggle, more }: LineProps) {
  const indent = { paddingLeft: `${10 + line.depth * INDENT}px` };
  if (line.type === 'loading') {
    return (
      <div class="tree-line muted" style={indent}>
        Reading …
      </div>
    );
  }
  if (line.type === 'more') {
    return (
      <button
        type="button"
        class="tree-line tree-button"
        style={indent}
        onClick={() => void more(line.prefix, line.next)}
      >
        Read more …
      </button>
    );
  }
  const { entry, isOpen } = line;
  if (entry.kind === 'folder') {
    return (
      <button
        type="button"
        class="tree-line tree-button"
        style={indent}
        aria-expanded={isOpen}
        onClick={() => toggle(entry.key)}
      >
        <span class="tree-sign" aria-hidden="true">
          {isOpen ? '▾' : '▸'}
        </span>
        <Text value={entry.name} max={120} />
      </button>
    );
  }
  return (
    <a class="tree-line" style={indent} href={keyAddress(entry.key)} aria-current={isSelected ? 'true' : undefined}>
      <span class="tree-sign" aria-hidden="true" />
      <span class="tree-name">
        {entry.name === '' ? <span class="muted">(the key itself)</span> : <Text value={entry.name} max={120} />}
      </span>
      <span class="tree-size">{entry.valueBytes === undefined ? '' : bytes(entry.valueBytes)}</span>
    </a>
  );
}
