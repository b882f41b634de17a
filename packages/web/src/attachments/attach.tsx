import { useEffect, useRef, useState } from 'preact/hooks';
import type { App } from '../state/app.ts';
import type { AttachedFile } from '../state/drafts.ts';
import type { OpenConversation } from '../state/open-conversation.ts';
import { text } from '../text/index.ts';
import { attachFiles, fileLimit, removeFile, storeFile } from './attach-file.ts';
import { percentText, sizeText, t } from './text.ts';

/** In the composer: picks files, takes those that are pasted or dropped, and shows them until they are sent. */
export function Attach({ app, opened }: { readonly app: App; readonly opened: OpenConversation }) {
  const picker = useRef<HTMLInputElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [limit, setLimit] = useState<number | undefined>();
  const [isOver, setOver] = useState(false);
  const files = opened.files.value;
  useEffect(() => {
    fileLimit(app).then(setLimit, () => undefined);
  }, []);
  useEffect(() => {
    const chat = box.current?.closest<HTMLElement>('.chat');
    if (chat == null) return;
    const stop = new AbortController();
    const taken = (data: DataTransfer | null) => [...(data?.files ?? [])];
    const add = (event: Event, picked: readonly File[]) => {
      if (picked.length === 0) return;
      event.preventDefault();
      void attachFiles(app, opened.files, picked);
    };
    const { signal } = stop;
    chat.addEventListener('paste', (event) => add(event, taken(event.clipboardData)), { signal });
    const dragged = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes('Files')) return;
      event.preventDefault();
      setOver(true);
    };
    chat.addEventListener('dragover', dragged, { signal });
    chat.addEventListener('dragleave', () => setOver(false), { signal });
    const dropped = (event: DragEvent) => {
      setOver(false);
      add(event, taken(event.dataTransfer));
    };
    chat.addEventListener('drop', dropped, { signal });
    return () => stop.abort();
  }, [opened]);
  const help = limit === 0 ? t.noStore : `${limit ? t.limit(sizeText(limit)) : ''} ${t.unchanged}`;
  return (
    <div ref={box} class="attach">
      {isOver && <p class="drop">{t.drop}</p>}
      {files.length > 0 && (
        <ul aria-label={t.attached}>
          {files.map((each) => (
            <FileLine key={each.id} {...{ app, opened, each }} />
          ))}
        </ul>
      )}
      {files.some(({ reference }) => reference === undefined) && <small>{t.wait}</small>}
      {files.length > 0 && <small>{help}</small>}
      <input
        ref={picker}
        type="file"
        multiple
        hidden
        aria-label={t.attach}
        onChange={({ currentTarget }) => {
          const picked = [...(currentTarget.files ?? [])];
          // The same file can be picked again.
          currentTarget.value = '';
          void attachFiles(app, opened.files, picked);
        }}
      />
      <button
        type="button"
        class="plain"
        aria-label={t.attach}
        title={`${t.attach}. ${help}`}
        onClick={() => {
          if (limit === 0) app.notice.value = t.noStore;
          else picker.current?.click();
        }}
      >
        <svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true">
          <path
            d="M8 12.5 14.5 6a3 3 0 0 1 4.2 4.2l-8.6 8.6a5 5 0 0 1-7-7L11 4"
            fill="none"
            stroke="currentColor"
            stroke-width="2"
            stroke-linecap="round"
          />
        </svg>
      </button>
    </div>
  );
}

function FileLine({
  app,
  opened,
  each: { id, file, preview, reference, fault, sent },
}: {
  readonly app: App;
  readonly opened: OpenConversation;
  readonly each: AttachedFile;
}) {
  const isStoring = reference === undefined && fault === '';
  const mayRetry = [t.notStored, t.offline, t.tooMuch, t.unreadable].includes(fault);
  return (
    <li>
      {preview !== undefined && <img src={preview} alt="" width={48} height={48} />}
      <span class="file">
        <bdi>{file.name}</bdi> <small>{sizeText(file.size)}</small>
        {isStoring && (
          <span>
            <progress aria-label={t.storing} {...(sent !== undefined && { value: sent })} />
            {sent !== undefined && <small> {percentText(sent)}</small>}
          </span>
        )}
        <small role="status" class={fault === '' ? '' : 'fault'}>
          {fault || (isStoring ? t.storing : t.stored)}
        </small>
      </span>
      {mayRetry && (
        <button type="button" class="plain" onClick={() => void storeFile(app, opened.files, id)}>
          {text.retry}
        </button>
      )}
      <button
        type="button"
        class="plain"
        aria-label={t.removeFile(file.name)}
        onClick={() => removeFile(opened.files, id)}
      >
        {isStoring ? text.cancel : text.remove}
      </button>
    </li>
  );
}
