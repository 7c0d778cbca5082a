import type { KvAnswer } from '@remora/gateway/http/json/kv';
import { useState } from 'preact/hooks';
import { historyPath, read } from '../../api/kv.ts';
import { useResource } from '../../app/hooks.ts';
import { clusterNow } from '../../app/time.ts';
import { Badge } from '../../kit/badge.tsx';
import { Command, Copy } from '../../kit/command.tsx';
import { Choice } from '../../kit/form.tsx';
import { Card, Facts } from '../../kit/page.tsx';
import { Loaded, Note } from '../../kit/states.tsx';
import { Text } from '../../kit/text.tsx';
import { byteLength, identityOf, type JsonBytes } from '../../logic/bytes.ts';
import { count, timeOfDay } from '../../logic/format.ts';
import { changeText } from '../../logic/key-change.ts';
import type { Word } from '../../logic/shell.ts';
import { sessionAddress } from '../sessions/session-link.tsx';
import { DeleteKey, EditKey } from './key-actions.tsx';
import { keyAddress } from './key-address.ts';
import { KeyChanges } from './key-changes.tsx';
import { KeyHistory } from './key-history.tsx';
import { ValueView } from './value-view.tsx';

const PARTS = [
  { value: 'value', text: 'Value' },
  { value: 'history', text: 'History' },
  { value: 'live', text: 'Watch live' },
] as const;

type Part = (typeof PARTS)[number]['value'];

/** How often the page asks whether the key has changed; less often for large values, which are sent too. */
const EVERY_MS = 3_000;
const EVERY_OF_LARGE_MS = 30_000;
const LARGE_BYTES = 64 * 1024;

interface KeyState {
  readonly found: KvAnswer | undefined;
  readonly atMs: number;
}

/** What has happened to the key since it was loaded; the value on the page stays until it is loaded again. */
function useChange(name: JsonBytes, loaded: KeyState | undefined): string | undefined {
  const isLarge = loaded?.found !== undefined && byteLength(loaded.found.value) > LARGE_BYTES;
  const { data } = useResource(
    loaded && `${identityOf(name)} after ${loaded.atMs}`,
    async (signal) => ({ present: await read(name, undefined, signal) }),
    { everyMs: isLarge ? EVERY_OF_LARGE_MS : EVERY_MS },
  );
  return loaded && data && changeText(loaded, data.present);
}

/** One key: its value now or at an earlier revision, its history, and its changes as they happen. */
export function KeyView({ name, revision }: { readonly name: JsonBytes; readonly revision: string }) {
  const [part, setPart] = useState<Part>('value');
  const at = /^\d{1,15}$/.test(revision) ? Number(revision) : undefined;
  const state = useResource(
    `${identityOf(name)} ${revision}`,
    async (signal): Promise<KeyState> => ({ found: await read(name, at, signal), atMs: clusterNow() }),
  );
  const found = state.data?.found;
  const change = useChange(name, at === undefined ? state.data : undefined);
  return (
    <div class="stack">
      <Card>
        <div class="row spread">
          <h2 class="key-name">
            <Text value={name} max={500} />
          </h2>
          <span class="row">
            {typeof name === 'string' && <Copy text={name} label="Copy the key" />}
            {at === undefined && state.data !== undefined && (
              <EditKey name={name} present={found} done={state.reload} />
            )}
            {at === undefined && found !== undefined && (
              <DeleteKey name={name} present={found} hasChanged={change !== undefined} done={state.reload} />
            )}
          </span>
        </div>
        <Choice label="What to show" value={part} options={PARTS} change={setPart} />
      </Card>
      {at !== undefined && (
        <Note>
          You see the key as of revision {count(at)}. <a href={keyAddress(name)}>Show its present value</a>
        </Note>
      )}
      {change !== undefined && (
        <Note tone="warn">
          <p role="status">{change}</p>
          <button type="button" class="button" onClick={state.reload}>
            Load the present value
          </button>
        </Note>
      )}
      {part === 'value' && (
        <Loaded of={state}>
          {(answer) =>
            answer.found === undefined ? (
              <Missing show={() => setPart('history')} />
            ) : (
              <Value found={answer.found} atMs={answer.atMs} />
            )
          }
        </Loaded>
      )}
      {part === 'history' && <KeyHistory key={state.data?.atMs} name={name} />}
      {part === 'live' && <KeyChanges name={name} since={found?.revision} />}
      <SameCommand name={name} part={part} at={at} />
    </div>
  );
}

interface SameCommandProps {
  readonly name: JsonBytes;
  readonly part: Part;
  readonly at: number | undefined;
}

function SameCommand({ name, part, at }: SameCommandProps) {
  const words = wordsOf(name, part, at);
  return words === undefined ? null : <Command words={words} />;
}

function wordsOf(name: JsonBytes, part: Part, at: number | undefined): readonly Word[] | undefined {
  if (part === 'live') return ['remora', 'kv', 'watch', name];
  if (part === 'value') return ['remora', 'kv', 'get', name, ...(at === undefined ? [] : ['--revision', String(at)])];
  const path = historyPath(name);
  return path === undefined ? undefined : ['curl', `${location.origin}${path}`];
}

function Missing({ show }: { show(): void }) {
  return (
    <Note tone="warn">
      <p>This key does not exist, or was deleted.</p>
      <button type="button" class="button" onClick={show}>
        Show its earlier values
      </button>
    </Note>
  );
}

function Value({ found, atMs }: { readonly found: KvAnswer; readonly atMs: number }) {
  const { value, createRevision, modRevision, version, lease } = found;
  return (
    <>
      <Card>
        <ValueView value={value} />
      </Card>
      <Card>
        <Facts
          facts={[
            ['Created at revision', count(createRevision)],
            ['Changed at revision', count(modRevision)],
            ['Version', count(version)],
            ['Loaded at', timeOfDay(atMs)],
            [
              'Lease',
              lease === undefined ? (
                <span key="none" class="muted">
                  none: it stays until it is deleted
                </span>
              ) : (
                <a key="lease" class="mono" href={sessionAddress(`${lease}.0`)}>
                  {lease}
                </a>
              ),
            ],
          ]}
        />
      </Card>
      {lease !== undefined && <Badge tone="info">deleted when its lease ends</Badge>}
    </>
  );
}
