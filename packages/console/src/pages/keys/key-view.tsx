import type { KvAnswer } from '@remora/gateway/http/json/kv';
import { useState } from 'preact/hooks';
import { read } from '../../api/kv.ts';
import { useResource } from '../../app/hooks.ts';
import { Badge } from '../../kit/badge.tsx';
import { Command, Copy } from '../../kit/command.tsx';
import { Choice } from '../../kit/form.tsx';
import { Card, Facts } from '../../kit/page.tsx';
import { Loaded, Note } from '../../kit/states.tsx';
import { Text } from '../../kit/text.tsx';
import { identityOf, type JsonBytes } from '../../logic/bytes.ts';
import { count } from '../../logic/format.ts';
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

/** One key: its value now or at an earlier revision, its history, and its changes as they happen. */
export function KeyView({ name, revision }: { readonly name: JsonBytes; readonly revision: string }) {
  const [part, setPart] = useState<Part>('value');
  const at = /^\d{1,15}$/.test(revision) ? Number(revision) : undefined;
  const state = useResource(`${identityOf(name)} ${revision}`, async (signal) => ({
    found: await read(name, at, signal),
  }));
  const found = state.data?.found;
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
            {at === undefined && found !== undefined && <DeleteKey name={name} present={found} done={state.reload} />}
          </span>
        </div>
        <Choice label="What to show" value={part} options={PARTS} change={setPart} />
      </Card>
      {at !== undefined && (
        <Note>
          You see the key as of revision {count(at)}. <a href={keyAddress(name)}>Show its present value</a>
        </Note>
      )}
      {part === 'value' && (
        <Loaded of={state}>
          {(answer) =>
            answer.found === undefined ? <Missing show={() => setPart('history')} /> : <Value found={answer.found} />
          }
        </Loaded>
      )}
      {part === 'history' && <KeyHistory name={name} />}
      {part === 'live' && <KeyChanges name={name} since={found?.revision} />}
      <Command words={['remora', 'kv', 'get', name, ...(at === undefined ? [] : ['--revision', String(at)])]} />
    </div>
  );
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

function Value({ found }: { readonly found: KvAnswer }) {
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
