import { useState } from 'preact/hooks';
import { messageOf } from '../../api/errors.ts';
import { exportPrefix, importLines } from '../../api/kv.ts';
import { Command } from '../../kit/command.tsx';
import { Dialog } from '../../kit/dialog.tsx';
import { Choice } from '../../kit/form.tsx';
import { ErrorNote } from '../../kit/states.tsx';
import { Text } from '../../kit/text.tsx';
import { announce } from '../../kit/toast.tsx';
import { isEmpty, type JsonBytes } from '../../logic/bytes.ts';
import { counted } from '../../logic/format.ts';

/** Downloads the keys under a prefix, and writes those of a file. */
export function Transfer({ prefix }: { readonly prefix: JsonBytes }) {
  const [isOpen, setOpen] = useState(false);
  const [isRunning, setRunning] = useState(false);
  const download = async (): Promise<void> => {
    setRunning(true);
    try {
      saveFile(await exportPrefix(prefix), 'remora-keys.jsonl');
    } catch (error) {
      announce(messageOf(error), 'warn');
    } finally {
      setRunning(false);
    }
  };
  return (
    <>
      <button type="button" class="button" disabled={isRunning} onClick={() => void download()}>
        {isRunning ? 'Exporting …' : isEmpty(prefix) ? 'Export all' : 'Export these'}
      </button>
      <button type="button" class="button" onClick={() => setOpen(true)}>
        Import
      </button>
      {isOpen && <Import close={() => setOpen(false)} />}
    </>
  );
}

const MODES = [
  { value: 'ifAbsent', text: 'Keep present keys' },
  { value: 'overwrite', text: 'Overwrite present keys' },
] as const;

function Import({ close }: { close(): void }) {
  const [file, setFile] = useState<File>();
  const [mode, setMode] = useState<(typeof MODES)[number]['value']>('ifAbsent');
  const [error, setError] = useState<unknown>();
  const [isRunning, setRunning] = useState(false);
  const run = async (chosen: File): Promise<void> => {
    setRunning(true);
    setError(undefined);
    try {
      const { written, skipped } = await importLines(await chosen.text(), mode);
      announce(`${counted(written, 'key')} written, ${counted(skipped, 'key')} kept.`, 'ok');
      close();
    } catch (cause) {
      setError(cause);
      setRunning(false);
    }
  };
  return (
    <Dialog title="Import keys" close={close}>
      <form
        class="dialog-body"
        onSubmit={(event) => {
          event.preventDefault();
          if (file !== undefined && !isRunning) void run(file);
        }}
      >
        <p>A file that Export has written: a line of JSON for each key.</p>
        <input
          type="file"
          aria-label="File"
          accept=".jsonl,.ndjson,application/x-ndjson"
          onChange={(event) => setFile(event.currentTarget.files?.[0])}
        />
        {file !== undefined && <Text value={file.name} />}
        <Choice label="Keys that exist" value={mode} options={MODES} change={setMode} />
        <Command
          words={[
            'curl',
            '--data-binary',
            `@${file?.name ?? 'remora-keys.jsonl'}`,
            '-H',
            'content-type: application/x-ndjson',
            `${location.origin}/v1/kv-import?mode=${mode}`,
          ]}
        />
        {error !== undefined && <ErrorNote error={error} />}
        <footer class="dialog-foot">
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="button button-primary" disabled={file === undefined || isRunning}>
            {isRunning ? 'Importing …' : 'Import'}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

function saveFile(content: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
