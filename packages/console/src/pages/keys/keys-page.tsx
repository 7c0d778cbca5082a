import { useState } from 'preact/hooks';
import { search } from '../../api/kv.ts';
import { useSettled } from '../../app/hooks.ts';
import { usePages } from '../../app/pages-hook.ts';
import { go } from '../../app/router.ts';
import { Search } from '../../kit/form.tsx';
import { Card, Page } from '../../kit/page.tsx';
import { Empty, ErrorNote, Loading } from '../../kit/states.tsx';
import { Table } from '../../kit/table.tsx';
import { Text } from '../../kit/text.tsx';
import { identityOf } from '../../logic/bytes.ts';
import { bytes, count, counted } from '../../logic/format.ts';
import { addressOf, textOf } from '../../logic/location.ts';
import type { PageProps } from '../page-props.ts';
import { keyAddress } from './key-address.ts';
import { KeyTree } from './key-tree.tsx';
import { KeyView } from './key-view.tsx';
import { NewKey } from './new-key.tsx';
import { ExactKey, OpenByName } from './open-key.tsx';
import { Transfer } from './transfer.tsx';

/** The keys as a tree, and one of them beside it. */
export function KeysPage({ query }: PageProps) {
  const key = query.get('key');
  const prefix = query.get('prefix') ?? '';
  const [typed, setTyped] = useState(textOf(query, 'search'));
  const wanted = useSettled(typed);
  const shownText = typeof key === 'string' ? { subjectText: key } : {};
  return (
    <Page title="Keys" subject="Keys" {...shownText} actions={<KeysActions prefix={prefix} />}>
      <div class="row">
        <Search
          label="Search keys"
          placeholder="Search keys …"
          value={typed}
          change={(value) => {
            setTyped(value);
            go('keys', { prefix, key, search: value }, { replace: true });
          }}
        />
        {prefix !== '' && (
          <span>
            in <Text value={prefix} max={80} /> <a href="/console/keys">show all</a>
          </span>
        )}
      </div>
      <div class={key === undefined ? 'keys-page' : 'keys-page keys-page-open'}>
        <Card isFlush>
          {wanted === '' ? (
            <>
              <KeyTree key={identityOf(prefix)} prefix={prefix} selected={key} />
              {key !== undefined && (
                <p class="muted found">
                  Deleted keys are not listed. <a href={addressOf('keys', { prefix })}>Open one by its name</a>
                </p>
              )}
            </>
          ) : (
            <Found prefix={prefix} wanted={wanted} />
          )}
        </Card>
        {key === undefined ? (
          <Card>
            <Empty title="Choose a key to see its value, its history and its lease." />
            <OpenByName key={identityOf(prefix)} prefix={prefix} />
          </Card>
        ) : (
          <KeyView key={identityOf(key)} name={key} revision={textOf(query, 'revision')} />
        )}
      </div>
    </Page>
  );
}

function KeysActions({ prefix }: { readonly prefix: ReturnType<typeof textOf> | { readonly base64: string } }) {
  return (
    <>
      <Transfer prefix={prefix} />
      <NewKey prefix={typeof prefix === 'string' ? prefix : ''} />
    </>
  );
}

/** Keys that contain a text, found by the server. */
function Found({
  prefix,
  wanted,
}: {
  readonly prefix: Parameters<typeof search>[0]['prefix'];
  readonly wanted: string;
}) {
  const list = usePages(`${identityOf(prefix)} ${wanted}`, async (after, signal) => {
    const { kvs, next } = await search({ prefix, contains: wanted }, after, signal);
    return { rows: kvs, next };
  });
  if (list.error !== undefined) return <ErrorNote error={list.error} retry={list.reload} />;
  if (!list.isLoaded) return <Loading />;
  return (
    <>
      <Table
        label="Keys that match"
        columns={[
          {
            title: 'Key',
            cell: ({ key }) => (
              <a href={keyAddress(key)}>
                <Text value={key} max={160} />
              </a>
            ),
          },
          {
            title: 'Size',
            isNumber: true,
            isMinor: true,
            cell: ({ valueBytes }) => (valueBytes === undefined ? '' : bytes(valueBytes)),
          },
          { title: 'Changed at', isNumber: true, isMinor: true, cell: ({ modRevision }) => count(modRevision) },
        ]}
        rows={list.rows}
        keyOf={({ key }) => identityOf(key)}
        atEnd={list.hasMore ? list.more : undefined}
        empty={
          <Empty title="No key matches.">
            <p>Deleted keys are not found by a search.</p>
            <ExactKey name={wanted} />
          </Empty>
        }
      />
      <p class="muted found row" role="status">
        <span>
          {counted(list.rows.length, 'key')} {list.hasMore && (list.isLoading ? '… searching' : 'found so far')}
        </span>
        {list.hasMore && !list.isLoading && (
          <button type="button" class="button button-small" onClick={list.more}>
            Search on
          </button>
        )}
        {list.rows.length > 0 && list.rows.every(({ key }) => key !== wanted) && <ExactKey name={wanted} />}
      </p>
    </>
  );
}
