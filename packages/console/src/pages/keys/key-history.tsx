import type { KeyVersionJson } from '@remora/gateway/http/json/kv';
import { useState } from 'preact/hooks';
import { history } from '../../api/kv.ts';
import { useResource } from '../../app/hooks.ts';
import { usePages } from '../../app/pages-hook.ts';
import { Badge } from '../../kit/badge.tsx';
import { Card } from '../../kit/page.tsx';
import { Empty, ErrorNote, Loading } from '../../kit/states.tsx';
import { Text } from '../../kit/text.tsx';
import { identityOf, type JsonBytes } from '../../logic/bytes.ts';
import { bytes, count } from '../../logic/format.ts';
import { Difference } from './difference.tsx';

const PREVIEW = 100;

/** The versions of a key that are kept, deletions included; each compared with the one before it. */
export function KeyHistory({ name }: { readonly name: JsonBytes }) {
  const id = identityOf(name);
  const list = usePages(id, async (after, signal) => {
    const { versions, next } = await history(name, after, signal);
    return { rows: versions, next };
  });
  const first = useResource(`compacted ${id}`, (signal) => history(name, undefined, signal));
  const [shown, setShown] = useState<number>();
  if (list.error !== undefined) return <ErrorNote error={list.error} retry={list.reload} />;
  if (!list.isLoaded) return <Loading />;
  const compacted = first.data?.compactRevision ?? 0;
  if (list.rows.length === 0) {
    return <Empty title="No version of this key is kept.">{compacted > 0 && <Compacted revision={compacted} />}</Empty>;
  }
  return (
    <Card title="History">
      <p class="muted">The newest version is first. Open one to see what it changed.</p>
      <ol class="versions">
        {list.rows.map((version, at) => (
          <Version
            key={version.modRevision}
            version={version}
            before={list.rows[at + 1]}
            isOpen={shown === version.modRevision}
            toggle={() => setShown(shown === version.modRevision ? undefined : version.modRevision)}
          />
        ))}
      </ol>
      {list.hasMore && (
        <button type="button" class="button" disabled={list.isLoading} onClick={list.more}>
          {list.isLoading ? 'Reading …' : 'Read older versions'}
        </button>
      )}
      {!list.hasMore && compacted > 0 && <Compacted revision={compacted} />}
    </Card>
  );
}

function Compacted({ revision }: { readonly revision: number }) {
  return (
    <p class="muted">History up to revision {count(revision)} is compacted: what was replaced before is deleted.</p>
  );
}

interface VersionProps {
  readonly version: KeyVersionJson;
  /** The version before; undefined if it is not read, or not kept. */
  readonly before: KeyVersionJson | undefined;
  readonly isOpen: boolean;
  toggle(): void;
}

function Version({ version, before, isOpen, toggle }: VersionProps) {
  const { modRevision } = version;
  return (
    <li>
      <button type="button" class="version" aria-expanded={isOpen} onClick={toggle}>
        <span class="version-revision">revision {count(modRevision)}</span>
        {version.type === 'delete' ? (
          <Badge tone="bad">deleted</Badge>
        ) : (
          <>
            <Badge>{version.version === 1 ? 'created' : `version ${version.version}`}</Badge>
            <span class="version-value">
              <Text value={version.value} max={PREVIEW} />
            </span>
            <span class="muted">{bytes(version.valueBytes)}</span>
          </>
        )}
      </button>
      {isOpen && <Difference before={valueIn(before)} after={valueIn(version)} />}
    </li>
  );
}

function valueIn(version: KeyVersionJson | undefined): JsonBytes | undefined {
  return version?.type === 'put' ? version.value : undefined;
}
